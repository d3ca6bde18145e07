import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** A Redis that tests may use. */
export interface TestRedis {
  readonly url: string;
  /** Stops it if it was started for the caller. */
  close(): Promise<void>;
}

/**
 * Finds a Redis to share: the one that TEST_REDIS_URL or REDIS_URL names, else the one on 127.0.0.1:6379, else one
 * started for the caller. Returns null with a message if there is none; with CI=true that is an error.
 *
 * Others may use it at the same time, so keys need a prefix of their own.
 */
export async function findRedis(): Promise<TestRedis | null> {
  const named = process.env.TEST_REDIS_URL || process.env.REDIS_URL;
  const url = named || 'redis://127.0.0.1:6379';
  if (await responds(url)) return { url, close: async () => {} };
  if (named)
    throw new Error(`No Redis responds at ${new URL(named).host}, which TEST_REDIS_URL or REDIS_URL names`);
  return startRedis();
}

/** Starts a server on a free port; returns null, as above, if no redis-server or valkey-server is on PATH. */
export async function startRedis(flags: string[] = []): Promise<RedisServer | null> {
  const binary = ['redis-server', 'valkey-server'].find(isOnPath);
  if (binary) return RedisServer.start(binary, flags);
  if (process.env.CI === 'true')
    throw new Error('CI needs Redis, and no redis-server or valkey-server is on PATH to start one');
  process.stderr.write(
    'Skipped tests that need Redis: no redis-server or valkey-server is on PATH to start one\n',
  );
  return null;
}

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const server of running) server.kill('SIGKILL');
});

/** A server process that a test can suspend, kill, and start again on the same port. */
export class RedisServer implements TestRedis {
  readonly port: number;
  readonly #binary: string;
  readonly #flags: string[];
  readonly #folder = mkdtempSync(join(tmpdir(), 'limits-redis-'));
  #process: ChildProcess | null = null;

  private constructor(binary: string, port: number, flags: string[]) {
    this.#binary = binary;
    this.port = port;
    this.#flags = flags;
  }

  static async start(binary: string, flags: string[]): Promise<RedisServer> {
    const server = new RedisServer(binary, await freePort(), flags);
    await server.run();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts the process, empty, and waits until it responds. */
  async run(): Promise<void> {
    const required = ['--bind', '127.0.0.1', '--port', `${this.port}`, '--save', '', '--appendonly', 'no'];
    const flags = [...required, '--dir', this.#folder, ...this.#flags];
    this.#process = spawn(this.#binary, flags, { stdio: 'ignore' });
    running.add(this.#process);
    await until(async () => (await responds(this.url)) || null);
  }

  /** Suspends the process: connections stay open and nothing responds. */
  stall(): void {
    this.#process?.kill('SIGSTOP');
  }

  resume(): void {
    this.#process?.kill('SIGCONT');
  }

  /** Kills the process; its data is lost. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    running.delete(child);
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Polls until there is a value, for at most `timeoutMs`, then throws. */
export async function until<T>(read: () => T | null | Promise<T | null>, timeoutMs = 5_000): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const value = await read();
    if (value !== null) return value;
    if (performance.now() > deadlineMs) throw new Error(`No value within ${timeoutMs} ms: ${read}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Whether a Redis responds there, even if only to say that it wants a password. */
async function responds(url: string): Promise<boolean> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: 500 });
  let message = '';
  client.on('error', (error) => {
    message = error.message;
  });
  try {
    await client.connect();
    return true;
  } catch {
    return message.includes('NOAUTH') || message.includes('WRONGPASS');
  } finally {
    client.disconnect();
  }
}

/** A port that nothing listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('A TCP server has a port');
  return address.port;
}

function isOnPath(binary: string): boolean {
  try {
    execFileSync(binary, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

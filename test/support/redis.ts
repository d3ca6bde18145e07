import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** A Redis that tests may use, and how to let go of it. */
export interface TestRedis {
  url: string;
  close(): Promise<void>;
}

/**
 * A Redis to share: the one that TEST_REDIS_URL or REDIS_URL names, else one on 127.0.0.1:6379, else one started for
 * the caller. Null, with one line that says so, when there is none; with CI set to true that is an error.
 *
 * Others may use it at the same time: keys need a prefix of their own.
 */
export async function findRedis(): Promise<TestRedis | null> {
  const named = process.env.TEST_REDIS_URL || process.env.REDIS_URL;
  const url = named || 'redis://127.0.0.1:6379';
  if (await answers(url)) return { url, close: async () => {} };
  if (named)
    throw new Error(`No Redis answers at ${new URL(named).host}, which TEST_REDIS_URL or REDIS_URL names`);
  return startRedis();
}

/** An own server on a free port; null, as above, when no redis-server or valkey-server is on PATH. */
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

/** A server process of the test's own, to be stopped, killed and started again on the same port. */
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

  /** Starts the process, empty, and waits until it answers. */
  async run(): Promise<void> {
    const always = ['--bind', '127.0.0.1', '--port', `${this.port}`, '--save', '', '--appendonly', 'no'];
    const flags = [...always, '--dir', this.#folder, ...this.#flags];
    this.#process = spawn(this.#binary, flags, { stdio: 'ignore' });
    running.add(this.#process);
    await until(async () => (await answers(this.url)) || null);
  }

  /** Stops the process in its tracks: connections stay open and nothing is answered. */
  stall(): void {
    this.#process?.kill('SIGSTOP');
  }

  resume(): void {
    this.#process?.kill('SIGCONT');
  }

  /** Ends the process without a goodbye; what it held is lost. */
  async kill(): Promise<void> {
    const ended = this.#process;
    this.#process = null;
    if (!ended || ended.exitCode !== null || ended.signalCode !== null) return;
    running.delete(ended);
    ended.kill('SIGKILL');
    await once(ended, 'exit');
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Polls until there is a value, at most `withinMs`; then throws. */
export async function until<T>(look: () => T | null | Promise<T | null>, withinMs = 5_000): Promise<T> {
  const lastMs = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (performance.now() > lastMs) throw new Error(`Not seen within ${withinMs} ms: ${look}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** True when a Redis answers there, also when it only says that it wants a password. */
async function answers(url: string): Promise<boolean> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: 500 });
  let refusal = '';
  client.on('error', (error) => {
    refusal = error.message;
  });
  try {
    await client.connect();
    return true;
  } catch {
    return refusal.includes('NOAUTH') || refusal.includes('WRONGPASS');
  } finally {
    client.disconnect();
  }
}

async function freePort(): Promise<number> {
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

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { endWithTests } from './end-with-tests.js';
import { freePort } from './free-port.js';
import { isOnPath, reportMissing } from './programs.js';
import { until } from './until.js';

/** A Redis that tests may use. */
export interface TestRedis {
  readonly url: string;
  /** Stops it if it was started for the caller. */
  close(): Promise<void>;
}

/**
 * Finds a Redis to share: the one that TEST_REDIS_URL or REDIS_URL names, else the one on 127.0.0.1:6379, else one
 * started for the caller. Returns undefined if there is none. The setup of the tests finds one for all files.
 *
 * Others may use it at the same time, so keys need a prefix of their own.
 */
export async function findRedis(): Promise<TestRedis | undefined> {
  const named = process.env.TEST_REDIS_URL || process.env.REDIS_URL;
  const url = named || 'redis://127.0.0.1:6379';
  if (await responds(url)) return { url, close: async () => {} };
  if (named)
    throw new Error(`No Redis responds at ${new URL(named).host}, which TEST_REDIS_URL or REDIS_URL names`);
  return startRedis();
}

/**
 * Starts a server on a free port, TEST_REDIS_SERVER if that is set; returns undefined if no redis-server or
 * valkey-server is on PATH. With a configuration for it, the server is a sentinel.
 */
export async function startRedis(
  flags: string[] = [],
  sentinelConfig?: string,
): Promise<RedisServer | undefined> {
  const binary = findBinary();
  return binary === undefined ? undefined : RedisServer.start(binary, flags, sentinelConfig);
}

/** Whether `startRedis` can start a server. */
export function canStartRedis(): boolean {
  return findBinary() !== undefined;
}

function findBinary(): string | undefined {
  const named = process.env.TEST_REDIS_SERVER;
  const binaries = named ? [named] : ['redis-server', 'valkey-server'];
  const binary = binaries.find((program) => isOnPath(program));
  if (binary !== undefined) return binary;
  reportMissing(binaries.join(' or '));
  return undefined;
}

/** A server process that a test can suspend, kill, and start again on the same port. */
export class RedisServer implements TestRedis {
  readonly port: number;
  readonly #binary: string;
  readonly #flags: string[];
  readonly #folder = mkdtempSync(join(tmpdir(), 'limits-redis-'));
  readonly #mode: readonly string[] = [];
  #process: ChildProcess | undefined;

  private constructor(binary: string, port: number, flags: string[], sentinelConfig?: string) {
    this.#binary = binary;
    this.port = port;
    this.#flags = flags;
    if (sentinelConfig !== undefined) {
      const file = join(this.#folder, 'sentinel.conf');
      writeFileSync(file, sentinelConfig);
      this.#mode = [file, '--sentinel'];
    }
  }

  static async start(binary: string, flags: string[], sentinelConfig?: string): Promise<RedisServer> {
    const server = new RedisServer(binary, await freePort(), flags, sentinelConfig);
    await server.run();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts the process, empty, and waits until it responds. */
  async run(): Promise<void> {
    const required = ['--bind', '127.0.0.1', '--port', `${this.port}`, '--save', '', '--appendonly', 'no'];
    const flags = [...this.#mode, ...required, '--dir', this.#folder, ...this.#flags];
    const server = spawn(this.#binary, flags, { stdio: 'ignore' });
    this.#process = server;
    endWithTests(server);
    await until(async () => {
      if (server.exitCode !== null) throw new Error(`${this.#binary} ${flags.join(' ')}: ${server.exitCode}`);
      return (await responds(this.url)) || undefined;
    });
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
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Whether a Redis responds there, even if only to say that it wants a password. */
async function responds(url: string): Promise<boolean> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: 5_000 });
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

import { type RedisServer, startRedis, until } from '@animal-store/limits/testing';
import { Redis } from 'ioredis';
import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type RateLimitResult,
  type Subject,
} from '../../src/index.js';
import { WINDOWS } from './windows.js';

const closing: (() => Promise<unknown> | unknown)[] = [];

/** Registers what `closeAll` does. */
export function onClose(close: () => Promise<unknown> | unknown): void {
  closing.push(close);
}

/** Closes everything that a test has started: for `afterEach`. */
export async function closeAll(): Promise<void> {
  await Promise.all(closing.splice(0).map((close) => close()));
}

export async function server(...flags: string[]): Promise<RedisServer> {
  const started = await startRedis(flags);
  if (!started) throw new Error('The server could be started a moment ago');
  onClose(() => started.close());
  return started;
}

/** The limiter of one process, what it logs, and how far its time is ahead. */
export interface Node {
  readonly limiter: Limiter;
  readonly logged: readonly string[];
  readonly clock: { aheadMs: number };
}

/** Starts a node; waits until it counts in Redis, unless told not to. */
export async function node(
  urls: string[],
  waits = true,
  options: Pick<LimiterOptions, 'commandTimeoutMs'> = {},
): Promise<Node> {
  const clock = { aheadMs: 0 };
  const logged: string[] = [];
  const record = (details: object, message: string) => logged.push(`${message} ${JSON.stringify(details)}`);
  const log = { info: record, warn: record };
  const limiter = await createLimiter({
    ...options,
    windows: WINDOWS,
    redisUrls: urls,
    log,
    clock: () => Math.floor(performance.now()) + clock.aheadMs,
  });
  onClose(() => limiter.close());
  if (waits) await reaches(limiter, 'redis');
  return { limiter, logged, clock };
}

/** The contract allows 5 s for a recovery, which a busy machine may exceed. */
export async function reaches(limiter: Limiter, state: Limiter['state']): Promise<void> {
  await until(() => limiter.state === state || undefined);
}

export function admin({ url }: { url: string }): Redis {
  const client = new Redis(url);
  client.on('error', () => {});
  onClose(() => client.disconnect());
  return client;
}

export const subject: Subject = {
  kind: 'key',
  id: 'key-of-the-test',
  limits: { perMinute: 60, perDay: 1_000 },
};

/** One request after the other. */
export async function consumeMany(limiter: Limiter, count: number, of = subject): Promise<RateLimitResult[]> {
  const results: RateLimitResult[] = [];
  for (let n = 0; n < count; n += 1) results.push(await limiter.consume(of, 1));
  return results;
}

export function countAllowed(results: readonly RateLimitResult[]): number {
  return results.filter(({ isAllowed }) => isAllowed).length;
}

/** Sends requests on all nodes at once, about a thousand a second on each, until the work is done. */
export async function consumeDuring(
  nodes: readonly Node[],
  of: Subject,
  work: () => Promise<unknown>,
): Promise<{ allowed: number }> {
  const sent = { allowed: 0 };
  let isDone = false;
  const send = async ({ limiter }: Node) => {
    while (!isDone) {
      if ((await limiter.consume(of, 1)).isAllowed) sent.allowed += 1;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };
  const sending = Promise.all(nodes.map(send));
  await work().finally(() => {
    isDone = true;
  });
  await sending;
  return sent;
}

import { afterEach, expect } from 'vitest';
import type { Limiter, RateLimitResult } from '../../src/index.js';
import { countAllowed } from './limiter-nodes.js';
import { createKey, hasRedis, openMemory, openRedis } from './limiter-stores.js';

/** For `describe.each` */
export const STORES = [
  { store: 'memory', skipped: false, open: openMemory },
  { store: 'redis', skipped: !hasRedis, open: openRedis },
] as const;

/** One limiter for the tests of a `describe.each(STORES)`, after each of which the same store has to decide still. */
export function shareLimiter({ store, skipped, open }: (typeof STORES)[number]): () => Promise<Limiter> {
  let opened: Limiter | undefined;
  const openOnce = async () => {
    opened ??= (await open()).limiter;
    return opened;
  };
  afterEach(async () => {
    if (!skipped) expect((await openOnce()).state).toBe(store);
  });
  return openOnce;
}

/** Makes the calls between those of an ordinary caller, whose limit has to hold. */
export async function expectOrdinaryBeside(
  limiter: Limiter,
  calls: readonly (() => unknown)[],
): Promise<void> {
  const before = limiter.state;
  const ordinary = createKey({ perMinute: 60, perDay: 1_000 });
  const results: (RateLimitResult | Promise<RateLimitResult>)[] = [];
  const consume = (count: number) => {
    for (let n = 0; n < count; n += 1) results.push(limiter.consume(ordinary, 1));
  };
  for (const call of calls) {
    consume(10);
    await call();
  }
  consume(80);
  expect(countAllowed(await Promise.all(results))).toBe(60);
  expect(limiter.state).toBe(before);
}

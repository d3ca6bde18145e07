import { findRedis } from '@animal-store/limits/testing';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { expect } from 'vitest';
import {
  createLimiter,
  type Limiter,
  type Limits,
  type RateLimitResult,
  type Subject,
  type WindowKind,
} from '../../src/index.js';
import { reaches } from './limiter-nodes.js';
import { LimitsModel } from './limits-model.js';
import { MODEL_RUNS } from './model-runs.js';
import { WINDOWS } from './windows.js';

export const silent = { info: () => {}, warn: () => {} };
export const START_MS = Date.UTC(2030, 0, 1);

/** The windows of a limiter, the shortest first */
export type Windows = readonly [WindowKind, ...WindowKind[]];

/** A limiter over either store, whose time the test controls. */
export interface Fixture {
  windows: Windows;
  limiter: Limiter;
  /** Unix milliseconds, which are set with the clock of the machine, and those of the clock that cannot be set */
  clock: { nowMs: number; elapsedMs: number };
  /** Lets time pass for the node, and in the store for one key. */
  advance(ms: number, keyId: string): Promise<void>;
  /** Sets the clock of the machines forth or back: of the node, and of the store for one key. */
  setClocks(ms: number, keyId: string): Promise<void>;
  /** Makes the store lose the counters of a key, unless it is the memory of the node. */
  lose(keyId: string): Promise<void>;
}

export async function openMemory(windows: Windows = WINDOWS): Promise<Fixture> {
  const clock = { nowMs: START_MS, elapsedMs: 0 };
  const clocks = { clock: () => clock.elapsedMs, now: () => clock.nowMs };
  const limiter = await createLimiter({ windows, redisUrls: [], log: silent, ...clocks });
  const setClocks = async (ms: number) => {
    clock.nowMs += ms;
  };
  const advance = async (ms: number) => {
    clock.elapsedMs += ms;
    await setClocks(ms);
  };
  return { windows, limiter, clock, advance, setClocks, lose: async () => {} };
}

const redis = await findRedis();
export const hasRedis = redis !== undefined;
// Files share modules, and each closes what it has opened.
let client: Redis | undefined;
const prefix = `limits-test-${process.pid}`;
const opened: Limiter[] = [];

/** Redis uses its own clock, so time is advanced there by moving its timestamps back. */
export async function openRedis(windows: Windows = WINDOWS): Promise<Fixture> {
  const clock = { nowMs: START_MS, elapsedMs: 0 };
  const clocks = { clock: () => clock.elapsedMs, now: () => clock.nowMs };
  const redisUrls = [redis?.url ?? ''];
  // A busy machine may take longer than the default, and memory would decide. Outages have tests of their own.
  const commandTimeoutMs = 20_000;
  const limiter = await createLimiter({
    windows,
    redisUrls,
    log: silent,
    prefix,
    commandTimeoutMs,
    ...clocks,
  });
  opened.push(limiter);
  client ??= new Redis(redis?.url ?? '');
  await reaches(limiter, 'redis');
  const setClocks = async (ms: number, keyId: string) => {
    clock.nowMs += ms;
    const age = `for _, key in ipairs(KEYS) do for _, field in ipairs(redis.call('HKEYS', key)) do
      if field:find('Ends$') then redis.call('HINCRBY', key, field, -ARGV[1]) end
    end end`;
    await client?.eval(age, 2, `${prefix}:key:{${keyId}}`, `${prefix}:denied:{${keyId}}`, ms);
  };
  const advance = async (ms: number, keyId: string) => {
    clock.elapsedMs += ms;
    await setClocks(ms, keyId);
  };
  const lose = async (keyId: string) => {
    await client?.del(`${prefix}:key:{${keyId}}`);
  };
  return { windows, limiter, clock, advance, setClocks, lose };
}

export const listStates = () => opened.map(({ state }) => state);

export async function closeStores(): Promise<void> {
  await Promise.all(opened.splice(0).map((limiter) => limiter.close()));
  if (client) {
    const keys = await client.keys(`${prefix}:*`);
    if (keys.length > 0) await client.del(keys);
    client.disconnect();
    client = undefined;
  }
  await redis?.close();
}

let keyCount = 0;
export function createKey(limits: Limits): Subject {
  keyCount += 1;
  return { kind: 'key', id: `00000000-0000-4000-8000-${String(keyCount).padStart(12, '0')}`, limits };
}

export function remaining({ windows }: RateLimitResult): number[] {
  return windows.map((window) => window.remaining);
}

export function pick(result: RateLimitResult) {
  const { isAllowed, binding, retryAfterSeconds } = result;
  return { isAllowed, remaining: remaining(result), binding: binding.name, retryAfterSeconds };
}

/** Limits in every window, or in some of them: `shortest` requests at most in the first, and `step` more in each of the next. */
export function anyLimits(shortest: number, step: number, windows: Windows = WINDOWS): fc.Arbitrary<Limits> {
  const [{ field: first }, ...others] = windows;
  const limitOf = (max: number) => fc.integer({ min: 1, max });
  const further = others.map(({ field }, index) => [field, limitOf(shortest + step * (index + 1))] as const);
  return fc.record(
    { [first]: limitOf(shortest), ...Object.fromEntries(further) },
    { requiredKeys: [first] },
  ) as fc.Arbitrary<Limits>;
}

/** Whether any interleaving of calls, batches, changed limits, time and lost counters gives the results of the model. */
export async function expectContract(fixture: Fixture): Promise<void> {
  const limits = anyLimits(8, 12, fixture.windows);
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ cost: fc.integer({ min: 1, max: 6 }) }) },
    {
      weight: 2,
      arbitrary: fc.record({ seconds: fc.constantFrom(1, 2, 30, 59, 60, 61, 300, 3_600, 86_400) }),
    },
    { weight: 1, arbitrary: fc.record({ limits }) },
    { weight: 1, arbitrary: fc.constant({ isLost: true }) },
  );
  const property = fc.asyncProperty(
    limits,
    fc.array(step, { maxLength: 60, size: 'max' }),
    async (first, steps) => {
      let subject = createKey(first);
      const model = new LimitsModel(fixture.windows);
      let hasLost = false;
      for (const action of steps) {
        // In its last second, a window that is lost is not restored.
        if (hasLost && model.isAboutToEnd) return;
        if ('cost' in action) {
          const result = await fixture.limiter.consume(subject, action.cost);
          expect(pick(result)).toEqual(model.consume(subject.limits, action.cost));
        } else if ('seconds' in action) {
          await fixture.advance(action.seconds * 1000, subject.id);
          model.nowSeconds += action.seconds;
        } else if ('isLost' in action) {
          await fixture.lose(subject.id);
          hasLost = true;
        } else {
          subject = { ...subject, limits: action.limits };
        }
      }
    },
  );
  await fc.assert(property, MODEL_RUNS);
}

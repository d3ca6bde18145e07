import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { FoundKey } from '../../src/keys/api-key.js';
import { createAuthenticator } from '../../src/keys/authenticator.js';
import { generateKey, hashKey } from '../../src/keys/format.js';
import { KEY_TTL_MS, MAX_CHECKED_AT_ONCE } from '../../src/keys/known-keys.js';

/** From one check of the keys in use to the next */
const INTERVAL_MS = 1_000;

let nowMs: number;
beforeEach(() => {
  nowMs = 1_000;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function pass(ms: number): Promise<void> {
  nowMs += ms;
  await vi.advanceTimersByTimeAsync(ms);
}

/** Resolves when what follows from it has happened. */
async function settle(run: () => void): Promise<void> {
  run();
  await new Promise(setImmediate);
}

interface Check {
  readonly ids: readonly string[];
  readonly answer: (changed: readonly string[]) => Promise<void>;
  readonly fail: () => Promise<void>;
}

/** An authenticator on a database that has `count` keys, and whose answers to checks the test gives. */
function setUp(count = 1) {
  const keys = Array.from({ length: count }, () => generateKey('by_test_'));
  const rows = new Map(keys.map((key, n) => [hashKey(key).toString('hex'), String(n)]));
  const checks: Check[] = [];
  let lookups = 0;
  const authenticator = createAuthenticator({
    store: {
      async findByHashes(hashes) {
        lookups += hashes.length;
        const ids = hashes.map((hash) => rows.get(Buffer.from(hash).toString('hex')));
        return ids.map((id) => id && ({ id, revokedAt: null, expiresAt: null } as FoundKey)) as FoundKey[];
      },
      findChanged: (found) =>
        new Promise((resolve, reject) => {
          checks.push({
            ids: found.map(({ id }) => id),
            answer: (changed) => settle(() => resolve([...changed])),
            fail: () => settle(() => reject(new Error('unavailable'))),
          });
        }),
    },
    prefix: 'by_test_',
    now: Date.now,
  });
  const use = (position = 0) => authenticator.authenticate(`Bearer ${keys[position]}`);
  /** How many keys are looked up while this runs */
  const countLookups = async (run: () => Promise<unknown>) => {
    const before = lookups;
    await run();
    return lookups - before;
  };
  return {
    authenticator,
    keys,
    checks,
    use,
    countLookups,
    useAll: () => Promise.all(keys.map((_, n) => use(n))),
  };
}

test('a check is about the keys that were used since the one before, and none is made for no key', async () => {
  const { checks, use, useAll } = setUp(3);
  await pass(3 * INTERVAL_MS);
  expect(checks).toEqual([]);
  await useAll();
  await pass(INTERVAL_MS);
  expect(checks.map(({ ids }) => ids)).toEqual([['0', '1', '2']]);
  await checks.shift()?.answer([]);
  for (const _ of 'twice') await use(1);
  await pass(INTERVAL_MS);
  expect(checks.map(({ ids }) => ids)).toEqual([['1']]);
});

test('a key that is in use and does not change is looked up once, and one that has changed once more', async () => {
  const { checks, use, countLookups } = setUp();
  const useFor = async (seconds: number, changed: readonly string[]) => {
    for (let second = 0; second < seconds; second += 1) {
      await use();
      await pass(INTERVAL_MS);
      await checks.shift()?.answer(changed);
    }
    await use();
  };
  expect(await countLookups(() => useFor(60, []))).toBe(1);
  expect(await countLookups(() => useFor(1, ['0']))).toBe(1);
});

test('a key that was not in use is looked up when it is used next', async () => {
  const { checks, use, countLookups } = setUp();
  await use();
  await pass(INTERVAL_MS);
  await checks.shift()?.answer([]);
  await pass(KEY_TTL_MS - 1);
  // Not since it was asked about, which was when the check began
  expect(await countLookups(use)).toBe(0);
  await pass(INTERVAL_MS);
  await checks.shift()?.answer([]);
  await pass(KEY_TTL_MS);
  expect(await countLookups(use)).toBe(1);
});

test.each(['fail', 'hang'])('no key is trusted for longer while checks %s', async (how) => {
  const { checks, use, countLookups } = setUp();
  await use();
  await pass(INTERVAL_MS);
  if (how === 'fail') await checks.shift()?.fail();
  await pass(KEY_TTL_MS - INTERVAL_MS - 1);
  expect(await countLookups(use)).toBe(0);
  await pass(1);
  expect(await countLookups(use)).toBe(1);
});

test('an answer counts from when its question was asked, and does not undo what this process has changed since', async () => {
  const { authenticator, checks, use, countLookups } = setUp();
  await use();
  await pass(INTERVAL_MS);
  authenticator.forget('0');
  await checks.shift()?.answer([]);
  expect(await countLookups(use)).toBe(1);
  await pass(INTERVAL_MS);
  const check = checks.shift();
  await use();
  await pass(KEY_TTL_MS - INTERVAL_MS);
  await check?.answer([]);
  await pass(INTERVAL_MS - 1);
  expect(await countLookups(use)).toBe(0);
  await pass(1);
  expect(await countLookups(use)).toBe(1);
});

test('many keys are checked by several statements', async () => {
  const { checks, useAll } = setUp(MAX_CHECKED_AT_ONCE + 1);
  await useAll();
  await pass(INTERVAL_MS);
  expect(checks.map(({ ids }) => ids.length)).toEqual([MAX_CHECKED_AT_ONCE]);
  await checks.shift()?.answer([]);
  await vi.waitFor(() => expect(checks.map(({ ids }) => ids.length)).toEqual([1]));
});

test('a key that was not in the database is refused for a time that begins when it was asked for', async () => {
  let found: FoundKey | undefined;
  let respond = () => {};
  const { authenticate } = createAuthenticator({
    store: {
      findByHashes: () => new Promise((resolve) => (respond = () => resolve([found]))),
      findChanged: async () => [],
    },
    prefix: 'by_test_',
    now: Date.now,
  });
  const header = `Bearer ${generateKey('by_test_')}`;
  const first = authenticate(header);
  await new Promise(setImmediate);
  await pass(1_000);
  respond();
  const refused = { rejected: { code: 'invalid_api_key' } };
  expect(await first).toMatchObject(refused);
  found = { id: '0', revokedAt: null, expiresAt: null } as FoundKey;
  await pass(KEY_TTL_MS - 1_001);
  expect(await authenticate(header)).toMatchObject(refused);
  await pass(2);
  const second = authenticate(header);
  await new Promise(setImmediate);
  respond();
  expect(await second).toMatchObject({ apiKey: { id: '0' } });
});

import { afterEach, expect, test, vi } from 'vitest';
import type { FoundKey } from '../../src/keys/api-key.js';
import { createAuthenticator } from '../../src/keys/authenticator.js';
import { generateKey, hashKey } from '../../src/keys/format.js';
import { KEY_TTL_MS } from '../../src/keys/known-keys.js';

afterEach(() => vi.restoreAllMocks());

interface Statement {
  /** The positions in `keys` of those that it looks up */
  readonly keys: readonly number[];
  readonly respond: () => void;
}

/** An authenticator on a store that holds the given keys and responds when the test says so. */
function setUp(validCount: number, count: number) {
  const keys = Array.from({ length: count }, () => generateKey('by_test_'));
  const hashes = keys.map((key) => hashKey(key).toString('hex'));
  const statements: Statement[] = [];
  const find = (position: number) =>
    position < validCount
      ? ({ id: String(position), revokedAt: null, expiresAt: null } as FoundKey)
      : undefined;
  const findByHashes = (wanted: readonly Uint8Array[]) =>
    new Promise<(FoundKey | undefined)[]>((resolve) => {
      const positions = wanted.map((hash) => hashes.indexOf(Buffer.from(hash).toString('hex')));
      statements.push({ keys: positions, respond: () => resolve(positions.map(find)) });
    });
  const store = { findByHashes, findChanged: async () => [] };
  const authenticator = createAuthenticator({ store, prefix: 'by_test_', now: Date.now });
  const authenticate = async (position: number, isOverLimit = false) => {
    const found = await authenticator.authenticate(`Bearer ${keys[position]}`, () => isOverLimit);
    if ('rejected' in found) return found.rejected.code;
    return 'apiKey' in found ? found.apiKey.id : found.unavailable;
  };
  const nextStatement = async () => {
    await expect.poll(() => statements.length).toBeGreaterThan(0);
    return statements.shift() as Statement;
  };
  const forget = () => authenticator.forget('0');
  return { authenticate, forget, nextStatement, statements };
}

test('the keys of a tick share a statement, those that arrive while it runs share the next, and equal ones are one', async () => {
  const { authenticate, nextStatement, statements } = setUp(2, 5);
  const first = [0, 1, 2, 2].map((position) => authenticate(position));
  const statement = await nextStatement();
  expect(statement.keys).toEqual([0, 1, 2]);
  const second = [3, 4, 3].map((position) => authenticate(position));
  expect(statements).toHaveLength(0);
  statement.respond();
  expect(await Promise.all(first)).toEqual(['0', '1', 'invalid_api_key', 'invalid_api_key']);
  const next = await nextStatement();
  expect(next.keys).toEqual([3, 4]);
  next.respond();
  expect(new Set(await Promise.all(second))).toEqual(new Set(['invalid_api_key']));
});

test('a key that was valid a moment ago does not wait for unknown ones', async () => {
  const { authenticate, nextStatement } = setUp(1, 3);
  const first = authenticate(0);
  (await nextStatement()).respond();
  expect(await first).toBe('0');
  const flood = [1, 2].map((position) => authenticate(position));
  const blocked = await nextStatement();
  expect(blocked.keys).toEqual([1, 2]);
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + KEY_TTL_MS);
  const again = authenticate(0);
  const own = await nextStatement();
  expect(own.keys).toEqual([0]);
  own.respond();
  expect(await again).toBe('0');
  blocked.respond();
  await Promise.all(flood);
});

test('keys from addresses over their limit are looked up last, and found nevertheless', async () => {
  const { authenticate, nextStatement } = setUp(121, 121);
  const running = authenticate(0);
  const statement = await nextStatement();
  const overLimit = Array.from({ length: 60 }, (_, n) => authenticate(n + 1, true));
  const others = Array.from({ length: 60 }, (_, n) => authenticate(n + 61));
  statement.respond();
  const order: number[] = [];
  while (order.length < 120) {
    const { keys, respond } = await nextStatement();
    order.push(...keys);
    respond();
  }
  expect(order.slice(0, 60).every((position) => position >= 61)).toBe(true);
  expect(await Promise.all([running, ...overLimit, ...others])).not.toContain('invalid_api_key');
});

test('after a key was changed by this process, no lookup counts that may have read it before', async () => {
  const { authenticate, forget, nextStatement } = setUp(1, 1);
  const before = authenticate(0);
  const early = await nextStatement();
  forget();
  const after = authenticate(0);
  early.respond();
  expect(await before).toBe('0');
  (await nextStatement()).respond();
  expect(await after).toBe('0');
  // Known again, and trusted again
  expect(await authenticate(0)).toBe('0');
});

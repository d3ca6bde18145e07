import { post, rpcPath } from '@animal-store/platform/testing';
import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { list, read } from '#operations-under-test';
import { createAuthenticator } from '../../src/keys/authenticator.js';
import { generateKey, hashKey, isWellFormedKey } from '../../src/keys/format.js';
import type { KeyStore } from '../../src/keys/store.js';
import { rotate } from '../support/rotate.js';
import { useService } from '../support/test-service.js';

let now = Date.now();

const { call, service } = useService({ now: () => now });
afterEach(() => vi.restoreAllMocks());

const plain = { name: 'a key', plan: 'free', perMinute: null, perDay: null, expiresAt: null } as const;

test.each([
  ['no header', null, 'missing_api_key'],
  ['another scheme', 'Basic dXNlcjpwYXNz', 'missing_api_key'],
  ['a key without a scheme', generateKey('by_test_'), 'missing_api_key'],
  ['a scheme alone', 'Bearer', 'missing_api_key'],
  ['a scheme and blanks', 'Bearer    ', 'missing_api_key'],
  ['garbage', 'Bearer nonsense', 'invalid_api_key'],
  ['two words', 'Bearer by_test_a by_test_b', 'invalid_api_key'],
  ['a name of the prototype', 'Bearer __proto__', 'invalid_api_key'],
  ['a well-formed key that was never issued', `Bearer ${generateKey('by_test_')}`, 'invalid_api_key'],
  ['a production key', `Bearer ${generateKey('by_live_')}`, 'invalid_api_key'],
])('%s is a 401 on both protocols, before any input is checked', async (_name, authorization, code) => {
  const headers: Record<string, string> = authorization === null ? {} : { authorization };
  for (const path of [`${list.path}?limit=x`, `${list.path}/x`]) {
    const { status, body, headers: responseHeaders } = await call(path, { key: null, headers });
    expect([status, body.code]).toEqual([401, code]);
    expect(responseHeaders.get('www-authenticate')).toBe('Bearer');
  }
  const rest = await call(list.path, {
    ...post('{'),
    key: null,
    headers: { ...headers, 'content-type': 'text/plain' },
  });
  expect([rest.status, rest.body.code]).toEqual([401, code]);
  const rpc = await call(rpcPath(read.name, read.inputOf('x')), { key: null, headers });
  expect([rpc.status, rpc.body.error.data.error.code]).toEqual([401, code]);
  expect(rpc.headers.get('www-authenticate')).toBe('Bearer');
  const batch = await call(`${read.trpc},${list.name}?batch=1`, { key: null, headers });
  expect([batch.status, batch.body.error.data.error.code]).toEqual([401, code]);
});

test('the scheme is case-insensitive', async () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    const { status } = await call(list.path, { headers: { authorization: `${scheme} ${service.key}` } });
    expect(status).toBe(200);
  }
});

test('an expired key is invalid from that instant', async () => {
  const expiresAt = new Date(now + 60_000);
  const { key } = await service.keys.create({ ...plain, expiresAt });
  now = expiresAt.getTime() - 1;
  expect((await call(list.path, { key })).status).toBe(200);
  now = expiresAt.getTime();
  expect((await call(list.path, { key })).body.code).toBe('invalid_api_key');
});

/** Expects this error code, or none, within the two seconds that the contract allows. */
async function expectCode(key: string, code: string | undefined): Promise<void> {
  await expect.poll(async () => (await call(list.path, { key })).body.code, { interval: 100 }).toBe(code);
}

test('a revocation takes effect', async () => {
  const { key, apiKey } = await service.keys.create(plain);
  expect((await call(list.path, { key })).status).toBe(200);
  await service.keys.revoke(apiKey.id, new Date());
  await expectCode(key, 'invalid_api_key');
});

test('after a rotation the new key works at once and the old one ends soon after', async () => {
  const { key, apiKey } = await service.keys.create(plain);
  expect((await call(list.path, { key })).status).toBe(200);
  const rotated = await rotate(service.keys, apiKey.id);
  expect((await call(list.path, { key: rotated?.key ?? '' })).status).toBe(200);
  await expectCode(key, 'invalid_api_key');
});

test('a new key works soon, however often it was rejected before', async () => {
  const { key, apiKey } = await service.keys.create(plain);
  const prisma = await service.database.loadPrisma();
  await prisma.apiKey.update({
    where: { id: apiKey.id },
    data: { hash: new Uint8Array(32) },
  });
  expect((await call(list.path, { key })).status).toBe(401);
  await prisma.apiKey.update({
    where: { id: apiKey.id },
    data: { hash: new Uint8Array(hashKey(key)) },
  });
  await expectCode(key, undefined);
});

test('the database holds the hash of a key and never the key', async () => {
  const { key, apiKey } = await service.keys.create(plain);
  const { rows } = await service.database.pool.query('SELECT * FROM api_keys WHERE id = $1', [apiKey.id]);
  expect(rows[0].hash).toEqual(hashKey(key));
  expect(JSON.stringify(rows).includes(key.slice('by_test_'.length + 6))).toBe(false);
  expect(Object.keys(apiKey)).not.toContain('hash');
});

test('garbage is rejected without a query', async () => {
  const store = {
    findByHashes: () => Promise.reject(new Error('the database was queried')),
  } as unknown as KeyStore;
  const { authenticate } = createAuthenticator({ store, prefix: 'by_test_', now: Date.now });
  const garbage = fc.oneof(fc.string(), fc.stringMatching(/^as_(live|test)_[0-9A-Za-z]{36}$/));
  await fc.assert(
    fc.asyncProperty(garbage, async (text) => {
      expect(await authenticate(`Bearer ${text}`)).toMatchObject({ rejected: { status: 401 } });
    }),
  );
});

test('an unknown key is looked up once a second at most, and the cache of unknown keys is bounded', async () => {
  let lookups = 0;
  const findByHashes = async (hashes: readonly Uint8Array[]) => {
    lookups += hashes.length;
    return hashes.map(() => undefined);
  };
  const store = { findByHashes } as unknown as KeyStore;
  // Time stands still, so that no lookup expires.
  vi.spyOn(performance, 'now').mockReturnValue(1_000);
  const { authenticate } = createAuthenticator({ store, prefix: 'by_test_', now: Date.now });
  const unknown = Array.from({ length: 10_001 }, () => `Bearer ${generateKey('by_test_')}`);
  const expectRejected = async (header = '') =>
    expect(await authenticate(header)).toMatchObject({ rejected: { status: 401 } });
  await Promise.all([expectRejected(unknown[0]), expectRejected(unknown[0])]);
  await expectRejected(unknown[0]);
  expect(lookups).toBe(1);
  for (const header of unknown) await expectRejected(header);
  expect(lookups).toBe(10_001);
  await expectRejected(unknown[0]);
  expect(lookups).toBe(10_002);
});

test('a key is looked up once, however its header is written', async () => {
  let lookups = 0;
  const apiKey = { id: 'a', revokedAt: null, expiresAt: null };
  const findByHashes = async () => {
    lookups += 1;
    return [apiKey];
  };
  const store = { findByHashes } as unknown as KeyStore;
  vi.spyOn(performance, 'now').mockReturnValue(1_000);
  const { authenticate, peek } = createAuthenticator({ store, prefix: 'by_test_', now: Date.now });
  const key = generateKey('by_test_');
  for (const scheme of ['bearer ', `Bearer${' '.repeat(15_000)}`, 'BEARER  ', 'Bearer '])
    expect(await authenticate(scheme + key)).toMatchObject({ apiKey });
  expect(lookups).toBe(1);
  expect(peek(`Bearer ${key}`)).toMatchObject({ apiKey });
});

test('a generated key is well-formed, and no longer is when any one character changes', async () => {
  fc.assert(
    fc.property(
      fc.constantFrom('by_live_' as const, 'by_test_' as const),
      fc.nat(),
      fc.string({ minLength: 1, maxLength: 1 }),
      (prefix, at, character) => {
        const key = generateKey(prefix);
        expect(isWellFormedKey(key, prefix)).toBe(true);
        expect(isWellFormedKey(key, prefix === 'by_live_' ? 'by_test_' : 'by_live_')).toBe(false);
        const place = at % key.length;
        const changed = key.slice(0, place) + character + key.slice(place + 1);
        expect(isWellFormedKey(changed, prefix)).toBe(changed === key);
      },
    ),
  );
});

test('generated keys are unique', () => {
  const keys = Array.from({ length: 2_000 }, () => generateKey('by_test_'));
  expect(new Set(keys).size).toBe(keys.length);
});

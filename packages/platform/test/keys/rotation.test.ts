import { expect, test } from 'vitest';
import { createAuthenticator } from '../../src/keys/authenticator.js';
import { rotate } from '../support/rotate.js';
import { useService } from '../support/test-service.js';

let now = Date.now();

const { service } = useService();

const plain = { name: 'a key', plan: 'free', perMinute: null, perDay: null, expiresAt: null } as const;
const HOUR_MS = 3_600_000;

/** Whether a key works. Nothing is cached, so that only the clock decides. */
async function works(key: string | undefined): Promise<boolean> {
  const { authenticate } = createAuthenticator({ store: service.keys, prefix: 'by_test_', now: () => now });
  return 'apiKey' in (await authenticate(`Bearer ${key}`));
}

test('the old key works during the overlap, as the same key, and ends exactly with it', async () => {
  const { key: old, apiKey } = await service.keys.create(plain);
  const rotated = await rotate(service.keys, apiKey.id, new Date(now + HOUR_MS));
  expect(rotated?.apiKey.previousExpiresAt?.getTime()).toBe(now + HOUR_MS);
  const { authenticate } = createAuthenticator({ store: service.keys, prefix: 'by_test_', now: () => now });
  const [byOld, byNew] = [await authenticate(`Bearer ${old}`), await authenticate(`Bearer ${rotated?.key}`)];
  expect([byOld, byNew]).toMatchObject([{ apiKey: { id: apiKey.id } }, { apiKey: { id: apiKey.id } }]);
  now += HOUR_MS - 1;
  expect(await authenticate(`Bearer ${old}`)).toMatchObject({ apiKey: { id: apiKey.id } });
  now += 1;
  expect(await authenticate(`Bearer ${old}`)).toMatchObject({ rejected: { code: 'invalid_api_key' } });
  expect([await works(old), await works(rotated?.key)]).toEqual([false, true]);
});

test('without an overlap the old key ends at once', async () => {
  const { key: old, apiKey } = await service.keys.create(plain);
  const rotated = await rotate(service.keys, apiKey.id);
  expect([await works(old), await works(rotated?.key)]).toEqual([false, true]);
});

test('a second rotation with an overlap during an overlap changes nothing, also at the same time, so that a repetition ends no key', async () => {
  const { key: first, apiKey } = await service.keys.create(plain);
  const endsAt = new Date(now + HOUR_MS);
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => rotate(service.keys, apiKey.id, endsAt)),
  );
  const [second, ...more] = answers.filter((answer) => answer !== undefined);
  expect(more).toEqual([]);
  expect([await works(first), await works(second?.key)]).toEqual([true, true]);
  const { apiKey: other } = await service.keys.create(plain);
  // All or none
  expect(await service.keys.rotateAll([other.id, apiKey.id], endsAt)).toEqual([]);
  expect((await service.keys.find(other.id))?.previousExpiresAt).toBeNull();
});

test('a second rotation that is done again, or has no overlap, ends the oldest key at once', async () => {
  const { key: first, apiKey } = await service.keys.create(plain);
  const second = await rotate(service.keys, apiKey.id, new Date(now + HOUR_MS));
  const third = await rotate(service.keys, apiKey.id, new Date(now + HOUR_MS), true);
  expect([await works(first), await works(second?.key), await works(third?.key)]).toEqual([
    false,
    true,
    true,
  ]);
  const fourth = await rotate(service.keys, apiKey.id);
  expect([await works(second?.key), await works(third?.key), await works(fourth?.key)]).toEqual([
    false,
    false,
    true,
  ]);
});

test('an overlap does not prolong a key that expires before it ends', async () => {
  const { key: old, apiKey } = await service.keys.create({ ...plain, expiresAt: new Date(now + HOUR_MS) });
  await rotate(service.keys, apiKey.id, new Date(now + 2 * HOUR_MS));
  now += HOUR_MS;
  expect(await works(old)).toBe(false);
});

test('revocation and a change of plan apply to the old key as to the new one', async () => {
  const { key: old, apiKey } = await service.keys.create(plain);
  const rotated = await rotate(service.keys, apiKey.id, new Date(now + HOUR_MS));
  await service.keys.setPlanAll([apiKey.id], { plan: 'pro', perMinute: null, perDay: null });
  const { authenticate } = createAuthenticator({ store: service.keys, prefix: 'by_test_', now: () => now });
  expect(await authenticate(`Bearer ${old}`)).toMatchObject({ apiKey: { plan: 'pro' } });
  await service.keys.revoke(apiKey.id, new Date());
  expect([await works(old), await works(rotated?.key)]).toEqual([false, false]);
});

const hash = new Uint8Array(32).fill(9);
const until = new Date();

test.each([
  ['the hash of an old key without an end', { previousHash: hash }],
  ['the end of an old key without its hash', { previousExpiresAt: until }],
  ['the hash of an old key of another length', { previousHash: hash.slice(1), previousExpiresAt: until }],
  ['an old key that is the new one', { hash, previousHash: hash, previousExpiresAt: until }],
])('Prisma Studio cannot store %s', async (_name, data) => {
  const { apiKey } = await service.keys.create(plain);
  const prisma = await service.database.loadPrisma();
  await expect(prisma.apiKey.update({ where: { id: apiKey.id }, data })).rejects.toThrow();
});

test('two keys cannot have the same old key', async () => {
  const prisma = await service.database.loadPrisma();
  const [one, other] = [await service.keys.create(plain), await service.keys.create(plain)];
  const data = { previousHash: hash, previousExpiresAt: until };
  await prisma.apiKey.update({ where: { id: one.apiKey.id }, data });
  await expect(prisma.apiKey.update({ where: { id: other.apiKey.id }, data })).rejects.toThrow();
});

import { createCaller, post } from '@animal-store/platform/testing';
import { create, LEAST_NUMBER, list, newItem, otherList, read } from '#operations-under-test';
import { hashKey } from '../../src/keys/format.js';
import { deleteExpiredCreates } from '../../src/tables/idempotency.js';
import { createUsageStore, DAY_MS, lastDays, toDay } from '../../src/usage/store.js';
import { rotate } from './rotate.js';
import type { TestService } from './test-service.js';

/** Keys that a caller may not use, by what was done to them. */
export type RefusedKeys = Readonly<Record<'revoked' | 'expired' | 'replaced' | 'banned', string>>;

/** Issues a key of each kind that is refused. They differ in nothing but their dates. */
export async function issueRefusedKeys({ keys }: Pick<TestService, 'keys'>): Promise<RefusedKeys> {
  const issue = (name: string, expiresAt?: Date) => keys.create({ name, plan: 'free', expiresAt });
  const past = new Date('2026-01-02T03:04:05.678Z');
  const [revoked, expired, replaced, banned] = await Promise.all([
    issue('revoked'),
    issue('expired', past),
    issue('replaced'),
    issue('banned'),
  ]);
  await keys.revoke(revoked.apiKey.id, past);
  await rotate(keys, replaced.apiKey.id, past);
  await keys.ban(banned.apiKey.id, 86_400);
  return { revoked: revoked.key, expired: expired.key, replaced: replaced.key, banned: banned.key };
}

/** Uses every operation and statement of a service. Resolves with what came of it, without what differs each time. */
export async function runEveryOperation(service: TestService, refused: RefusedKeys) {
  const { keys, serviceDatabase: database } = service;
  const call = createCaller(service);
  const answer = async (path: string, init?: Parameters<typeof call>[1]) => {
    const { status, body } = await call(path, init);
    return { path: path.replace(/\/\d+$/, '/…'), status, body: withoutChanging(body) };
  };
  const odd = { ...newItem('Odd "NULL" \\ é', LEAST_NUMBER), ...list.filter };
  const once = post(odd, { 'idempotency-key': `once-${Math.random()}` });
  const { body: item } = await call(create.path, post(odd));
  const answers = [
    ...(await Promise.all([1, 2, 3].map(() => answer(create.path, post(odd))))),
    await answer(create.path, once),
    await answer(create.path, once),
    await answer(`${list.path}?limit=3`),
    await answer(`${list.path}?limit=2&cursor=2&${list.filterQuery}`),
    await answer(read.pathOf(item.id)),
    ...(await Promise.all([1, 2, 3].map((id) => answer(read.pathOf(id))))),
    await answer(list.trpc),
    await answer(otherList.path),
    await answer(`${otherList.path}?limit=2&cursor=3`),
    await answer('/v1/key'),
  ];
  const refusals = Object.entries(refused).map(async ([name, key]) => [
    name,
    (await call(list.path, { key })).status,
  ]);
  const usage = createUsageStore(database);
  const { apiKey } = await keys.create({ name: 'used', plan: 'free', expiresAt: new Date(4e12) });
  const day = 20_000;
  const counts = { requests: 7, denied: 2 };
  await usage.add([{ apiKeyId: apiKey.id, day: toDay(day * DAY_MS), operation: list.name, ...counts }]);
  await deleteExpiredCreates(database);
  const listed = (await keys.list()).sort((a, b) => (a.name < b.name ? -1 : 1));
  const found = (await keys.findByHashes(Object.values(refused).map(hashKey))).filter(
    (key) => key !== undefined,
  );
  return {
    answers,
    refusals: Object.fromEntries(await Promise.all(refusals)),
    keys: listed
      .filter(({ name }) => name in refused)
      .map(({ bannedUntil, lastUsedOn, ...key }) => withoutChanging(key)),
    used: withoutChanging(listed.find(({ id }) => id === apiKey.id)),
    usage: await usage.read(apiKey.id, lastDays(day * DAY_MS)),
    ofKey: (await usage.readKeys(lastDays(day * DAY_MS)))
      .filter(({ id }) => id === apiKey.id)
      .map(({ id, ...rest }) => rest),
    banned: [...(await keys.countBanned(new Date()))],
    found: found.map(({ name }) => name),
    changed: await keys.findChanged(found),
  };
}

const CHANGING = new Set(['id', 'hint', 'createdAt', 'limits', 'usage']);

function withoutChanging(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null), (name, member) => {
    // A date has to be one, whatever it is.
    if (/^\w+edAt$/.test(name)) return Number.isNaN(Date.parse(member)) ? member : 'a date';
    return CHANGING.has(name) ? undefined : member;
  });
}

import { type Caller, createCaller, rpcPath, type TestResponse, until } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { definition, list, otherList, read } from '#operations-under-test';
import { MAX_BATCH_SIZE } from '../../src/contract/protocol.js';
import { generateKey, testPrefix } from '../../src/keys/format.js';
import type { Operation } from '../../src/operations/list-operations.js';
import { isEarly, OUTCOMES, operations, PER_MINUTE, useEarlyCalls } from '../support/early-calls.js';
import { type EveryCall, nameOf } from '../support/every-call.js';
import { startService } from '../support/test-service.js';

// A query begins while its limit is decided. What is seen of one that is not admitted: early-calls-unseen.test.ts

const { watched, own, reset, watchedResources, callWith, issue, send, untilEnded } = useEarlyCalls();

test('every query begins while its limit is decided, unless it is free, and everything else afterwards', async () => {
  const queries = operations.filter(({ method, freeForKey }) => method === 'GET' && freeForKey === undefined);
  expect(operations.filter(({ mayBegin }) => mayBegin)).toEqual(queries);
  // What nothing limits waits for no decision.
  const limited = operations.filter(({ freeForKey }) => freeForKey !== 'always').map(({ name }) => name);
  for (const each of own.everyCall.filter(({ operation }) => limited.includes(operation))) {
    const { key } = await issue();
    own.limiter.hold();
    const sent = send(each, key);
    await own.limiter.untilHeld();
    if (isEarly(each)) await untilEnded();
    watched.events.push('decided');
    own.limiter.release();
    // On a busy machine a call may be a 503. What counts is the order.
    await sent;
    const order = watched.events.filter((event) => event !== 'ended').slice(0, 2);
    const expected = isEarly(each) ? ['begun', 'decided'] : ['decided', 'begun'];
    expect([nameOf(each), ...order]).toEqual([nameOf(each), ...expected]);
  }
});

test('what this process would deny by itself begins nothing, nor does an error that is rehearsed', async () => {
  const used = await issue(PER_MINUTE);
  const banned = await issue();
  await own.service.keys.ban(banned.apiKey.id, 300);
  // Asked for free, so that no limit is reached instead.
  const isBanned = async () => (await callWith(banned.key)('/v1/key')).body.bannedUntil !== null;
  await until(async () => (await isBanned()) || undefined);
  const rehearse: Caller = (path, init = {}) => {
    const headers = new Headers(init.headers);
    headers.set('prefer', 'error=not_found');
    return callWith(own.service.key)(path, { ...init, headers });
  };
  for (const each of own.everyCall.filter(isEarly)) {
    const { scope } = operations.find(({ name }) => name === each.operation) as Operation;
    const others = definition.scopes.filter((other) => other !== scope);
    const withoutScope = await issue(0, others);
    for (const [key, status] of [
      [used.key, 429],
      [banned.key, 429],
      [withoutScope.key, 403],
      [generateKey(testPrefix(definition.identity.keyPrefix)), 401],
    ] as const)
      expect([nameOf(each), (await send(each, key)).status]).toEqual([nameOf(each), status]);
    expect([nameOf(each), await each.send(rehearse)]).toEqual([nameOf(each), 404]);
    expect(watched.events).toEqual([]);
  }
});

test('a process that is overloaded begins nothing', async () => {
  // Every sample of the event loop counts as late.
  const overload = { delayMs: -60_000, sampleIntervalMs: 10 };
  const { databaseUrl } = own.service;
  const busy = await startService({ resources: watchedResources, databaseUrl, overload });
  onTestFinished(() => busy.close());
  const call = createCaller(busy);
  await until(async () => (await call('/v1/key')).status === 503 || undefined);
  reset();
  for (const each of own.everyCall.filter(isEarly))
    expect([nameOf(each), await each.send(call), watched.events]).toEqual([nameOf(each), 503, []]);
});

test('of the requests of a key, as many as its limit allows reach the database', async () => {
  const { key } = await issue();
  const call = callWith(key);
  const statuses: number[] = [];
  // One has been counted.
  for (let n = 1; n < 2 * PER_MINUTE; n += 1)
    statuses.push((await call(n % 2 ? list.path : list.trpc)).status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(PER_MINUTE - 1);
  expect(watched.events.filter((event) => event === 'begun')).toHaveLength(PER_MINUTE - 1);
});

test('a query that the database does not answer delays no denial, and is a 503 only for who is admitted', async () => {
  const begun = own.everyCall.filter(isEarly);
  const sent: { readonly each: EveryCall; readonly key: string; readonly status: number }[] = [];
  for (const [used, status] of [
    [0, 503],
    [PER_MINUTE, 429],
  ] as const)
    for (const each of begun) sent.push({ each, key: (await issue(used)).key, status });
  own.limiter.knowsCounts = false;
  watched.answer = () => new Promise(() => {});
  const answered: number[] = [];
  const statuses = sent.map(async ({ each, key }) => {
    const status = await each.send(callWith(key));
    answered.push(status);
    return status;
  });
  expect(await Promise.all(statuses)).toEqual(sent.map(({ status }) => status));
  // All have begun, and those that are denied are answered first.
  expect(watched.events).toEqual(sent.map(() => 'begun'));
  expect(answered).toEqual([...begun.map(() => 429), ...begun.map(() => 503)]);
});

test('a denial and a missing scope come before an error of the input', async () => {
  const tooMany = Array(MAX_BATCH_SIZE + 1).fill(list.name);
  const invalid = [
    [`${list.path}?limit=0`, 400],
    [`${list.path}?limit=1&limit=1`, 400],
    [read.pathOf('x'), 404],
    [rpcPath(list.name, { limit: 0 }), 400],
    [rpcPath(list.name, '{'), 400],
    [rpcPath(list.name, '['.repeat(65)), 400],
    [`/trpc/${tooMany}?batch=1`, 400],
  ] as const;
  for (const [path, status] of invalid) {
    const admitted = await issue();
    const denied = await issue(PER_MINUTE);
    const withoutScope = await issue(0, [otherList.scope]);
    own.limiter.knowsCounts = false;
    const statuses: number[] = [];
    for (const { key } of [admitted, denied, withoutScope]) statuses.push((await callWith(key)(path)).status);
    // Each call of a batch needs a scope of its own, so a batch that runs nothing needs none.
    expect([path, ...statuses]).toEqual([path, status, 429, path.includes('batch') ? status : 403]);
  }
});

test('HEAD has the headers of GET, also of the page that follows', async () => {
  const { key } = await issue();
  watched.answer = OUTCOMES['that has found a page and the next one'] as typeof watched.answer;
  const read = ({ headers }: TestResponse) =>
    ['content-length', 'content-type', 'link', 'x-next-cursor', 'vary'].map((name) => headers.get(name));
  for (const [path, name] of [
    [list.path, 'link'],
    [list.trpc, 'x-next-cursor'],
  ] as const) {
    const get = await callWith(key)(path);
    const head = await callWith(key)(path, { method: 'HEAD' });
    expect([head.status, ...read(head)]).toEqual([200, ...read(get)]);
    expect(get.headers.has(name)).toBe(true);
  }
});

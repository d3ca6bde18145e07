import { afterAll, describe, expect, test } from 'vitest';
import type { Limits } from '../src/index.js';
import { closeStores, createKey, remaining } from './support/limiter-stores.js';
import { expectOrdinaryBeside, STORES, shareLimiter } from './support/ordinary-caller.js';

afterAll(closeStores);

describe.each(STORES)('beside an ordinary caller, counted in $store,', (store) => {
  const storeTest = test.skipIf(store.skipped);
  const openOnce = shareLimiter(store);

  storeTest.each<[Limits]>([
    [{}],
    [{ perMinute: undefined }],
    [{ perMinute: null }],
    ...[Infinity, 1e14, Number.MAX_SAFE_INTEGER, 1e21, Number.MAX_VALUE].map((perMinute): [Limits] => [
      { perMinute, perDay: Infinity },
    ]),
  ])('limits of %o are none, and nobody is asked', async (limits) => {
    const limiter = await openOnce();
    const subject = createKey(limits);
    const binding = { name: 'none', limit: Infinity, remaining: Infinity };
    const allowed = {
      isAllowed: true,
      retryAfterSeconds: undefined,
      windows: [],
      consumedPoints: 0,
      binding,
    };
    await expectOrdinaryBeside(limiter, [
      // A promise has no isAllowed.
      () => expect(limiter.consume(subject, Number.MAX_SAFE_INTEGER)).toMatchObject(allowed),
      () => expect(limiter.read(subject, 1)).toMatchObject(allowed),
      () => expect(limiter.isDenied(subject, 1)).toBe(false),
      () => expect(() => limiter.countDenied(subject, 1, () => {})).toThrow(RangeError),
      () => expect(() => limiter.resetDenied(subject)).toThrow(RangeError),
    ]);
  });

  storeTest.each([
    ...['{}', '}', 'a}b{c', 'key:{a}', '\0\r\n', '\ud800', '__proto__'].map((id) => [JSON.stringify(id), id]),
    ['10,000 characters', 'x'.repeat(10_000)],
  ])('an id may be any text: %s', async (_, id) => {
    const limiter = await openOnce();
    const subject = { ...createKey({ perMinute: 2 }), id: `${id}${Math.random()}` };
    const consumed: boolean[] = [];
    const consume = async () => consumed.push((await limiter.consume(subject, 1)).isAllowed);
    await expectOrdinaryBeside(limiter, [consume, consume, consume]);
    expect(consumed).toEqual([true, true, false]);
  });

  storeTest.each([0, -0])('a limit of %o allows nothing', async (perMinute) => {
    const limiter = await openOnce();
    const result = await limiter.consume(createKey({ perMinute }), 1);
    expect([result.isAllowed, remaining(result)]).toEqual([false, [0]]);
  });

  storeTest.each([0, -0])('a cost of %o counts nothing, and starts no window', async (cost) => {
    const { limiter, advance } = await store.open();
    const subject = createKey({ perMinute: 2 });
    expect((await limiter.consume(subject, cost)).isAllowed).toBe(true);
    await limiter.countDenied(createKey({ perMinute: 0 }), cost, () => expect.unreachable());
    await advance(30_000, subject.id);
    const { binding } = await limiter.consume(subject, 1);
    expect(binding).toMatchObject({ remaining: 1, resetSeconds: 60 });
  });

  storeTest('the largest limit is exact', async () => {
    const limiter = await openOnce();
    const subject = createKey({ perMinute: 1e14 - 1 });
    const left: unknown[] = [];
    for (const cost of [Number.MAX_SAFE_INTEGER, 1e14 - 3, 1, 1, 1]) {
      const result = await limiter.consume(subject, cost);
      left.push([result.isAllowed, ...remaining(result)]);
    }
    expect(left).toEqual([
      [false, 1e14 - 1],
      [true, 2],
      [true, 1],
      [true, 0],
      [false, 0],
    ]);
  });
});

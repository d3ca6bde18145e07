import { afterAll, describe, expect, test } from 'vitest';
import type { Limiter, Subject } from '../src/index.js';
import { closeStores, createKey, remaining } from './support/limiter-stores.js';
import { expectOrdinaryBeside, STORES, shareLimiter } from './support/ordinary-caller.js';

afterAll(closeStores);

/** What neighbours of this library warn of, and what a row of a database or a request may hold */
interface Misuse {
  readonly of: string;
  readonly values: readonly unknown[];
  readonly error: typeof TypeError | typeof RangeError;
}

const ODD_OBJECTS = [{}, [], new Date(0), () => 1];
const SUBJECTS: readonly Misuse[] = [
  { of: 'subject', values: [undefined, null, 'account-7', 7], error: TypeError },
  {
    of: 'kind',
    values: [undefined, null, 'account', 'denied', 'toString', '__proto__', 1],
    error: TypeError,
  },
  { of: 'id', values: [undefined, null, '', 7, 7n, Number.NaN, ...ODD_OBJECTS], error: TypeError },
  { of: 'limits', values: [undefined, null, 60, '60', true], error: TypeError },
  { of: 'perMinute', values: ['300', '', 300n, Number.NaN, true, ...ODD_OBJECTS], error: TypeError },
  { of: 'perMinute', values: [-1, 1.5, 1e-7, Number.NEGATIVE_INFINITY], error: RangeError },
];
const ODD_COSTS = [
  ...[undefined, null, '2', '', 2n, true, Number.NaN, -1, 0.5, 1e-7, 2 ** 53, 1e21],
  ...[Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, ...ODD_OBJECTS],
];
const COSTS: readonly Misuse[] = [{ of: 'cost', values: ODD_COSTS, error: RangeError }];

const rowsOf = (misuses: readonly Misuse[]) =>
  misuses.flatMap(({ of, values, error }) => values.map((value) => [of, value, error] as const));

function createOddSubject(of: string, value: unknown): Subject {
  const ordinary = createKey({ perMinute: 60, perDay: 1_000 });
  if (of === 'subject') return value as Subject;
  return of in ordinary ? { ...ordinary, [of]: value } : { ...ordinary, limits: { [of]: value as number } };
}

type Method = (subject: unknown, cost: unknown, onLimit?: unknown) => unknown;

/** All methods that take a subject, by name */
function listMethods(limiter: Limiter): readonly (readonly [name: string, method: Method])[] {
  const { state, ready, close, ...methods } = limiter;
  return Object.entries(methods) as [string, Method][];
}

const listCostMethods = (limiter: Limiter) => listMethods(limiter).filter(([, { length }]) => length > 1);

const expectError = (call: () => unknown, of: string, error: Misuse['error']) =>
  expect((async () => call())()).rejects.toThrow(
    // A subject that is none has no kind.
    expect.objectContaining({
      name: error.name,
      message: expect.stringContaining(of === 'subject' ? 'kind' : `${of} must be`),
    }),
  );

describe.each(STORES)('beside an ordinary caller, counted in $store,', (store) => {
  const storeTest = test.skipIf(store.skipped);
  const openOnce = shareLimiter(store);

  storeTest.each(rowsOf(SUBJECTS))('%s that is %o is an error of each method', async (of, value, error) => {
    const limiter = await openOnce();
    const methods = listMethods(limiter);
    expect(methods.length).toBeGreaterThan(4);
    const subject = createOddSubject(of, value);
    await expectOrdinaryBeside(
      limiter,
      methods.map(
        ([, method]) =>
          () =>
            expectError(() => method(subject, 1, () => {}), of, error),
      ),
    );
  });

  storeTest.each(rowsOf(COSTS))('%s that is %o is an error of each method', async (of, value, error) => {
    const limiter = await openOnce();
    const methods = listCostMethods(limiter);
    expect(methods.length).toBeGreaterThan(3);
    const subject = createKey({ perMinute: 2 });
    await expectOrdinaryBeside(
      limiter,
      methods.map(
        ([, method]) =>
          () =>
            expectError(() => method(subject, value, () => {}), of, error),
      ),
    );
    expect(remaining(await limiter.read(subject, 1))).toEqual([2]);
  });

  storeTest.each([undefined, null, 'ban', {}])('onLimit that is %o is a TypeError', async (onLimit) => {
    const limiter = await openOnce();
    const count = limiter.countDenied as Method;
    const call = () => count(createKey({ perMinute: 2 }), 1, onLimit);
    await expectOrdinaryBeside(limiter, [() => expectError(call, 'onLimit', TypeError)]);
  });

  const BAN_ERROR = new Error('no ban');
  const fail = () => {
    throw BAN_ERROR;
  };
  storeTest.each([
    { fails: 'throws', onLimit: fail },
    { fails: 'rejects', onLimit: () => Promise.reject(BAN_ERROR) },
  ])('an onLimit that $fails fails the call that reached the limit alone', async ({ onLimit }) => {
    const limiter = await openOnce();
    const subject = createKey({ perMinute: 2 });
    const count = async () => limiter.countDenied(subject, 1, onLimit);
    await expectOrdinaryBeside(limiter, [
      () => expect(count()).resolves.toBe(undefined),
      () => expect(count()).rejects.toBe(BAN_ERROR),
      () => expect(count()).resolves.toBe(undefined),
    ]);
  });
});

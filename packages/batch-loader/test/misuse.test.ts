import { channel, tracingChannel } from 'node:diagnostics_channel';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { type BatchOptions, createBatchLoader } from '../src/batch-loader.js';

/** Settles as `run` should not, for the calls 1, 2 and 3. */
type MisusedRun = (calls: number[]) => unknown;
/** What becomes of the three calls */
type Outcomes = readonly PromiseSettledResult<unknown>[];

const fulfilled = (value: unknown) => ({ status: 'fulfilled', value }) as const;
const rejected = (reason: unknown) => ({ status: 'rejected', reason }) as const;
const all = <Outcome>(outcome: Outcome) => [outcome, outcome, outcome];
const notOneForEach = (what: string) =>
  all(rejected(new TypeError(`run must resolve with an array of one result for each of 3 calls: ${what}`)));

const ERROR = new Error('failed');
class OwnError extends Error {}
/** As every error of Node.js is in Jest, which runs tests in a context of their own */
const FOREIGN: Error = runInNewContext('new (class OwnError extends Error {})("foreign")');
const FOREIGN_ABORT: unknown = runInNewContext(
  `Object.create({ get [Symbol.toStringTag]() { return 'DOMException' } })`,
);

const RUNS: readonly (readonly [misuse: string, run: MisusedRun, outcomes: Outcomes])[] = [
  [
    'throws at once',
    () => {
      throw ERROR;
    },
    all(rejected(ERROR)),
  ],
  [
    'throws what is no Error',
    () => {
      throw 'timeout';
    },
    all(rejected('timeout')),
  ],
  ['rejects with what is no Error', () => Promise.reject('timeout'), all(rejected('timeout'))],
  ['rejects with nothing', () => Promise.reject(), all(rejected(undefined))],
  ['rejects with an Error of another realm', () => Promise.reject(FOREIGN), all(rejected(FOREIGN))],
  ['returns nothing', () => {}, notOneForEach('undefined')],
  ['resolves with nothing', async () => {}, notOneForEach('undefined')],
  ['resolves with null', async () => null, notOneForEach('null')],
  ['resolves with one result', async () => 7, notOneForEach('number')],
  ['resolves with a text of as many characters', async () => 'abc', notOneForEach('string')],
  ['resolves with what has a length', async () => ({ length: 3 }), notOneForEach('object')],
  ['resolves with a set', async (calls) => new Set(calls), notOneForEach('object')],
  ['resolves with the reply of a driver', async (calls) => ({ rows: calls }), notOneForEach('object')],
  ['leaves out what it did not find', async (calls) => calls.slice(1), notOneForEach('2')],
  ['finds nothing', async () => [], notOneForEach('0')],
  ['repeats a row, as a join does', async (calls) => [...calls, 3], notOneForEach('4')],
  ['empties its calls, and finds nothing', async (calls) => calls.splice(0) && [], notOneForEach('0')],
  ['empties its calls', async (calls) => calls.splice(0), [1, 2, 3].map(fulfilled)],
  ['returns its results without a promise', (calls) => calls, [1, 2, 3].map(fulfilled)],
  [
    'fills in only what it found',
    async () => {
      const results = new Array(3);
      results[1] = 2;
      return results;
    },
    [undefined, 2, undefined].map(fulfilled),
  ],
  [
    'has empty values among its results',
    async () => [null, undefined, 0],
    [null, undefined, 0].map(fulfilled),
  ],
  [
    'has promises for results, as an asynchronous function for each call gives',
    async (calls) => calls.map(async (call) => (call === 2 ? Promise.reject(ERROR) : call)),
    [fulfilled(1), rejected(ERROR), fulfilled(3)],
  ],
  ...[ERROR, new OwnError('own'), new DOMException('aborted', 'AbortError'), FOREIGN, FOREIGN_ABORT].map(
    (error) =>
      [
        `has ${Object.prototype.toString.call(error)} ${error} among its results`,
        async () => [1, error, 3],
        [fulfilled(1), rejected(error), fulfilled(3)],
      ] as const,
  ),
  [
    'describes an error by an object',
    async () => [1, { name: 'Error', message: 'failed' }, 3],
    [1, { name: 'Error', message: 'failed' }, 3].map(fulfilled),
  ],
];

test.each(RUNS)('a run that %s settles each call of the batch, and the next batch runs', async (...row) => {
  const [, misused, outcomes] = row;
  const batches: (readonly number[])[] = [];
  const run = (calls: readonly number[]) => {
    batches.push([...calls]);
    return (batches.length === 1 ? misused(calls as number[]) : Promise.resolve(calls)) as Promise<number[]>;
  };
  const loader = createBatchLoader(run, { maxConcurrent: 1 });
  const calls = [1, 2, 3].map((call) => loader.load(call));
  expect(await Promise.allSettled(calls)).toEqual(outcomes);
  expect(await loader.load(4)).toBe(4);
  expect(batches).toEqual([[1, 2, 3], [4]]);
});

test('a run may fill the same array for each batch', async () => {
  const results: number[] = [];
  const fill = async (calls: readonly number[]) => {
    results.splice(0, results.length, ...calls);
    return results;
  };
  const loader = createBatchLoader(fill, { maxSize: 2, maxConcurrent: 1 });
  expect(await Promise.all([1, 2, 3, 4].map((call) => loader.load(call)))).toEqual([1, 2, 3, 4]);
});

const COUNTS = ['maxSize', 'maxConcurrent', 'splitFrom', 'maxWaitMs'] as const;

test.each(
  COUNTS.flatMap((option) => [null, '2', 2n, Number.NaN, -1].map((value) => [option, value] as const)),
)('a loader whose %s is %o is an error, because its calls might never settle', (option, value) => {
  const options = { [option]: value } as BatchOptions;
  expect(() => createBatchLoader(async (calls) => calls, options)).toThrow(
    `${option} must be a number from `,
  );
});

test.each(COUNTS.filter((option) => option !== 'splitFrom'))(
  'a loader whose %s is 0 is an error, and Infinity is no limit',
  async (option) => {
    const create = (value: number) => createBatchLoader(async (calls) => calls, { [option]: value });
    expect(() => create(0)).toThrow(RangeError);
    expect(await create(Number.POSITIVE_INFINITY).load(1)).toBe(1);
  },
);

test.each([undefined, null, {}, Promise.resolve([])])(
  'a loader whose run is no function is an error: %o',
  (run) => {
    const create = createBatchLoader as (run: unknown) => unknown;
    expect(() => create(run)).toThrow(new TypeError(`run must be a function: ${typeof run}`));
  },
);

test('options that are undefined have their defaults', async () => {
  const options = Object.fromEntries([...COUNTS, 'channelName'].map((option) => [option, undefined]));
  expect(await createBatchLoader(async (calls) => calls, options as BatchOptions).load(1)).toBe(1);
});

test('a loader keeps nothing: a call that is made twice is sent twice', async () => {
  const batches: (readonly unknown[])[] = [];
  const loader = createBatchLoader<unknown, unknown>(async (calls) => {
    batches.push(calls);
    return calls;
  });
  const calls = ['a', 'a', undefined, null];
  expect(await Promise.all(calls.map((call) => loader.load(call)))).toEqual(calls);
  expect(batches).toEqual([calls]);
});

test('`load` can be handed to `map`, whose index makes no call yield', async () => {
  const batches: (readonly number[])[] = [];
  const { load } = createBatchLoader<number, number>(async (calls) => {
    batches.push(calls);
    return calls;
  });
  const yielding = load(1, true);
  expect(await Promise.all([2, 3, 4].map(load as (call: number) => Promise<number>))).toEqual([2, 3, 4]);
  expect(await yielding).toBe(1);
  expect(batches).toEqual([[2, 3, 4, 1]]);
});

test('a subscriber that throws is reported by Node.js, and each call gets its result', async () => {
  const channelName = 'subscriber-that-throws';
  const subscriber = () => {
    throw ERROR;
  };
  channel(`${channelName}.call`).subscribe(subscriber);
  const { start } = tracingChannel(channelName);
  start.subscribe(subscriber);
  const others = process.listeners('uncaughtException');
  const reported: unknown[] = [];
  process.removeAllListeners('uncaughtException').on('uncaughtException', (error) => reported.push(error));
  onTestFinished(() => {
    channel(`${channelName}.call`).unsubscribe(subscriber);
    start.unsubscribe(subscriber);
    process.removeAllListeners('uncaughtException');
    for (const other of others) process.on('uncaughtException', other);
  });
  const loader = createBatchLoader<number, number>(async (calls) => calls, { channelName });
  expect(await Promise.all([1, 2].map((call) => loader.load(call)))).toEqual([1, 2]);
  await expect.poll(() => reported).toEqual([ERROR, ERROR, ERROR]);
});

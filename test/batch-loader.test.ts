import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type BatchOptions, createBatchLoader } from '../src/batch-loader.js';

/** A loader whose batches end when the test says so. */
function createManualLoader(options?: BatchOptions) {
  const batches: { readonly calls: readonly number[]; end(): void }[] = [];
  const loader = createBatchLoader<number, number>(
    (calls) =>
      new Promise((resolve) => {
        batches.push({ calls, end: () => resolve(calls.map((call) => 2 * call)) });
      }),
    options,
  );
  return { loader, batches, sizes: () => batches.map(({ calls }) => calls.length) };
}

test('a lone call is sent before the end of the event-loop tick', async () => {
  const { loader, batches } = createManualLoader();
  const endOfTick = nextTick();
  const result = loader.load(1);
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(batches).toHaveLength(1);
  batches[0]?.end();
  expect(await result).toBe(2);
  await endOfTick;
});

test('calls made in one callback of the event loop share a batch', async () => {
  const { loader, batches, sizes } = createManualLoader();
  const results = Promise.all([loader.load(1), Promise.resolve().then(() => loader.load(2)), loader.load(3)]);
  await nextTick();
  expect(sizes()).toEqual([3]);
  batches[0]?.end();
  expect(await results).toEqual([2, 4, 6]);
});

test('where two batches may run at once, a call waits only when two are running', async () => {
  const { loader, batches, sizes } = createManualLoader({ maxConcurrent: 2 });
  const results: Promise<number>[] = [];
  for (const call of [1, 2, 3, 4]) {
    results.push(loader.load(call));
    await nextTick();
  }
  expect(sizes()).toEqual([1, 1]);
  batches[1]?.end();
  expect(await results[1]).toBe(4);
  await nextTick();
  expect(sizes()).toEqual([1, 1, 2]);
  for (const batch of batches) batch.end();
  expect(await Promise.all(results)).toEqual([2, 4, 6, 8]);
});

test('calls that arrive while a batch is running wait for its end', async () => {
  const { loader, batches, sizes } = createManualLoader();
  const first = loader.load(1);
  await nextTick();
  const second = loader.load(2);
  await nextTick();
  const third = loader.load(3);
  await nextTick();
  expect(sizes()).toEqual([1]);
  batches[0]?.end();
  expect(await first).toBe(2);
  await nextTick();
  expect(sizes()).toEqual([1, 2]);
  batches[1]?.end();
  expect(await Promise.all([second, third])).toEqual([4, 6]);
});

test('batches of limited size run one after the other', async () => {
  const { loader, batches, sizes } = createManualLoader({ maxSize: 2 });
  const results = Promise.all([1, 2, 3, 4, 5].map((call) => loader.load(call)));
  for (const expected of [[2], [2, 2], [2, 2, 1]]) {
    await nextTick();
    expect(sizes()).toEqual(expected);
    batches.at(-1)?.end();
  }
  expect(await results).toEqual([2, 4, 6, 8, 10]);
});

test('a batch has at most maxSize calls, and the rest are in further batches', async () => {
  const { loader, sizes } = createManualLoader({ maxSize: 2, maxConcurrent: 3 });
  for (const call of [1, 2, 3, 4, 5]) void loader.load(call);
  await nextTick();
  expect(sizes()).toEqual([2, 2, 1]);
});

test('after a batch has failed, calls are sent without delay again', async () => {
  let batches = 0;
  const loader = createBatchLoader<number, number>(async () => {
    batches += 1;
    throw new Error('failed');
  });
  await expect(loader.load(1)).rejects.toThrow('failed');
  const second = loader.load(2);
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(batches).toBe(2);
  await expect(second).rejects.toThrow('failed');
});

import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { type BatchOptions, createBatchLoader, TimeoutError } from '../src/batch-loader.js';

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

/** A manual loader after so many calls, one after the other, that the next one is sent at once. */
async function createIdleLoader() {
  const manual = createManualLoader();
  for (let call = 0; call < 8; call += 1) {
    const result = manual.loader.load(call);
    await nextTick();
    manual.batches[call]?.end();
    expect(await result).toBe(2 * call);
  }
  return manual;
}

test('without load, a call is sent at once', async () => {
  const { loader, batches } = await createIdleLoader();
  void loader.load(8);
  expect(batches).toHaveLength(9);
});

test('after two calls at the same time, the next ones share a batch again', async () => {
  const { loader, batches, sizes } = await createIdleLoader();
  const pair = Promise.all([loader.load(8), loader.load(9)]);
  batches[8]?.end();
  await nextTick();
  batches[9]?.end();
  expect(await pair).toEqual([16, 18]);
  void loader.load(10);
  void loader.load(11);
  await nextTick();
  expect(sizes().slice(8)).toEqual([1, 1, 2]);
});

test('after a batch of several, a call waits for others until the end of the event-loop tick', async () => {
  const { loader, batches, sizes } = createManualLoader();
  const load = async (...calls: readonly number[]) => {
    const results = Promise.all(calls.map((call) => loader.load(call)));
    await nextTick();
    batches.at(-1)?.end();
    await results;
  };
  for (let call = 0; call < 7; call += 1) await load(call);
  await load(7, 8);
  await load(9, 10);
  expect(sizes().slice(7)).toEqual([2, 2]);
});

test('calls made in one tick of the event loop share a batch', async () => {
  const { loader, batches, sizes } = createManualLoader();
  const results = Promise.all([loader.load(1), Promise.resolve().then(() => loader.load(2)), loader.load(3)]);
  await nextTick();
  expect(sizes()).toEqual([3]);
  batches[0]?.end();
  expect(await results).toEqual([2, 4, 6]);
});

test('a call waits only when two batches are running', async () => {
  const { loader, batches, sizes } = createManualLoader();
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

test('where one batch may run at once, calls that arrive while it is running wait for its end', async () => {
  const { loader, batches, sizes } = createManualLoader({ maxConcurrent: 1 });
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
  const { loader, batches, sizes } = createManualLoader({ maxSize: 2, maxConcurrent: 1 });
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

test('where batches are shared out, calls are divided evenly, including those under way', async () => {
  const { loader, batches, sizes } = createManualLoader({ splitFrom: 2 });
  const load = (count: number) => Promise.all(Array.from({ length: count }, (_, call) => loader.load(call)));
  const five = load(5);
  await nextTick();
  expect(sizes()).toEqual([2, 3]);
  const seven = load(7);
  batches[1]?.end();
  await nextTick();
  expect(sizes()).toEqual([2, 3, 4]);
  batches[0]?.end();
  await nextTick();
  expect(sizes()).toEqual([2, 3, 4, 3]);
  for (const batch of batches) batch.end();
  expect(await five).toEqual([0, 2, 4, 6, 8]);
  expect(await seven).toEqual([0, 2, 4, 6, 8, 10, 12]);
});

test('fewer calls than a share wait while a batch runs, until it ends or there are enough', async () => {
  const { loader, batches, sizes } = createManualLoader({ splitFrom: 3, maxConcurrent: 3 });
  const load = async (...calls: readonly number[]) => {
    const results = Promise.all(calls.map((call) => loader.load(call)));
    await nextTick();
    return results;
  };
  const loaded = [load(1, 2, 3)];
  await nextTick();
  loaded.push(load(4, 5));
  await nextTick();
  expect(sizes()).toEqual([3]);
  loaded.push(load(6));
  await nextTick();
  expect(sizes()).toEqual([3, 3]);
  loaded.push(load(7));
  batches[0]?.end();
  await nextTick();
  expect(sizes()).toEqual([3, 3]);
  batches[1]?.end();
  await nextTick();
  expect(sizes()).toEqual([3, 3, 1]);
  batches[2]?.end();
  expect((await Promise.all(loaded)).flat()).toEqual([2, 4, 6, 8, 10, 12, 14]);
});

test('calls that would be fewer than a share by themselves are sent with the others', async () => {
  const { loader, sizes } = createManualLoader({ splitFrom: 3 });
  for (let call = 0; call < 5; call += 1) void loader.load(call);
  await nextTick();
  expect(sizes()).toEqual([5]);
});

test('batches that are shared out have at most maxSize calls, and start when there are as many', async () => {
  const { loader, sizes } = createManualLoader({ splitFrom: 1, maxSize: 2, maxConcurrent: 4 });
  const load = (count: number) => {
    for (let call = 0; call < count; call += 1) void loader.load(call);
    return nextTick();
  };
  await load(6);
  expect(sizes()).toEqual([2, 2, 2]);
  await load(1);
  expect(sizes()).toEqual([2, 2, 2]);
  await load(1);
  expect(sizes()).toEqual([2, 2, 2, 2]);
});

test('calls that yield are sent after all others, which fill a batch first', async () => {
  const { loader, batches } = createManualLoader({ maxSize: 3, maxConcurrent: 1 });
  for (const call of [1, 2]) void loader.load(call, true);
  for (const call of [3, 4, 5, 6]) void loader.load(call);
  for (let sent = 0; sent < 2; sent += 1) {
    await nextTick();
    batches[sent]?.end();
  }
  expect(batches.map(({ calls }) => calls)).toEqual([
    [3, 4, 5],
    [6, 1, 2],
  ]);
});

test('calls that have waited too long are rejected, even where others leave them no place in a batch', async () => {
  const { loader, batches } = createManualLoader({ maxSize: 1, maxConcurrent: 1, maxWaitMs: 1_000 });
  void loader.load(1);
  await nextTick();
  const late = [loader.load(2), loader.load(3, true)].map((call) =>
    expect(call).rejects.toThrow(TimeoutError),
  );
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 1_001);
  try {
    void loader.load(4);
    batches[0]?.end();
    await Promise.all(late);
  } finally {
    clock.mockRestore();
  }
  expect(batches.map(({ calls }) => calls)).toEqual([[1], [4]]);
});

test('after a batch has failed, calls are sent without delay again', async () => {
  let batches = 0;
  const loader = createBatchLoader<number, number>(async () => {
    batches += 1;
    throw new Error('failed');
  });
  await expect(loader.load(1)).rejects.toThrow('failed');
  const second = expect(loader.load(2)).rejects.toThrow('failed');
  await nextTick();
  expect(batches).toBe(2);
  await second;
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createBatchedConsume } from '../../src/limits/batched-consume.js';
import { MemoryStore } from '../../src/limits/memory-store.js';
import { toWindows } from '../../src/limits/windows.js';

const createMemory = () => new MemoryStore({ maxSubjects: 10, clock: () => 0 });

/** A store that counts its calls. */
function createCountedStore() {
  const store = createMemory();
  const costs: number[] = [];
  const counted = {
    read: store.read.bind(store),
    consume: (...args: Parameters<MemoryStore['consume']>) => {
      costs.push(args[1]);
      return store.consume(...args);
    },
  };
  return { costs, consume: createBatchedConsume(counted, createMemory()) };
}

test('requests of one subject that arrive together are one call to the store', async () => {
  const { costs, consume } = createCountedStore();
  const windows = toWindows({ perMinute: 100 });
  const others = [1, 2, 3].map((cost) => consume({ id: 'a', cost, windows }));
  const results = await Promise.all([...others, consume({ id: 'b', cost: 4, windows })]);
  expect(costs).toEqual([6, 4]);
  expect(results.map(({ binding }) => binding.remaining)).toEqual([99, 97, 94, 96]);
});

test('a failure of the store for one subject does not affect the others', async () => {
  const store = createMemory();
  const failing = {
    read: store.read.bind(store),
    consume: async (...args: Parameters<MemoryStore['consume']>) => {
      if (args[0] === 'broken') throw new Error('broken');
      return store.consume(...args);
    },
  };
  const consume = createBatchedConsume(failing, createMemory());
  const windows = toWindows({ perMinute: 1 });
  const [broken, other] = await Promise.allSettled([
    consume({ id: 'broken', cost: 1, windows }),
    consume({ id: 'other', cost: 1, windows }),
  ]);
  expect(broken.status).toBe('rejected');
  expect(other).toMatchObject({ status: 'fulfilled', value: { isAllowed: true } });
});

test('together, requests get the same results as one after the other', async () => {
  const request = fc.record({ id: fc.constantFrom('a', 'b'), cost: fc.integer({ min: 1, max: 4 }) });
  const limits = fc.record({
    perMinute: fc.integer({ min: 1, max: 12 }),
    perDay: fc.integer({ min: 1, max: 12 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(request, { maxLength: 12 }), limits, async (requests, someLimits) => {
      const windows = toWindows(someLimits);
      const { consume } = createCountedStore();
      const single = createMemory();
      const expected = requests.map(({ id, cost }) => single.consumeNow(id, cost, { windows }));
      const results = await Promise.all(requests.map((each) => consume({ ...each, windows })));
      const toComparable = (result: (typeof expected)[number]) => ({ ...result });
      expect(results.map(toComparable)).toEqual(expected.map(toComparable));
    }),
  );
});

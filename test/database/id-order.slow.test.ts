import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService, type TestService } from '../support/test-service.js';

const CREATES = 8_000;
const CREATORS = 24;

let nodes: readonly [TestService, TestService];

beforeAll(async () => {
  const first = await startService();
  nodes = [first, await startService({ databaseUrl: first.databaseUrl })];
});
afterAll(() => Promise.all(nodes.map((node) => node.close())));

test('a reader that goes on from the last id it saw misses no pet that two nodes add meanwhile', async () => {
  const created: number[] = [];
  let isOver = false;
  let count = 0;
  const create = async (creator: number) => {
    const { pets } = nodes[creator % 2] as TestService;
    while (count < CREATES) {
      count += 1;
      const { id } = await pets.create({ name: `Pet ${creator}`, categoryId: 1 });
      created.push(id);
    }
  };
  const read = async ({ pets }: TestService) => {
    const seen: number[] = [];
    for (;;) {
      const isLast = isOver;
      const rows = await pets.list({ limit: 100, cursor: seen.at(-1) ?? 0 });
      seen.push(...rows.map(({ id }) => id));
      if (isLast && rows.length === 0) return seen;
    }
  };
  const reading = Promise.all(nodes.map(read));
  await Promise.all(Array.from({ length: CREATORS }, (_, creator) => create(creator)));
  isOver = true;
  created.sort((a, b) => a - b);
  expect(created).toHaveLength(CREATES);
  for (const seen of await reading) expect(seen).toEqual(created);
});

import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { insertSql, newItem } from '../../support/operations-under-test.js';
import { PostgresServer } from '../../support/postgres-server.js';
import { createTestDatabase, startService, type TestService } from '../../support/test-service.js';

const CREATES = 8_000;
const CREATORS = 24;

/** Two nodes on a database, until the test is over. */
async function startNodes(databaseUrl: string): Promise<readonly TestService[]> {
  const nodes = [await startService({ databaseUrl }), await startService({ databaseUrl })];
  onTestFinished(async () => void (await Promise.all(nodes.map((node) => node.close()))));
  return nodes;
}

/** What readers of both nodes saw, and what was created meanwhile, by ascending id. */
async function createAndRead(nodes: readonly TestService[]) {
  const created: number[] = [];
  let isOver = false;
  let count = 0;
  const create = async (creator: number) => {
    const { items } = nodes[creator % 2] as TestService;
    while (count < CREATES) {
      count += 1;
      const { id } = await items.create(newItem(`By ${creator}`));
      created.push(id);
    }
  };
  const read = async ({ items }: TestService) => {
    const seen: number[] = [];
    for (;;) {
      const isLast = isOver;
      const rows = await items.list({ limit: 100, cursor: seen.at(-1) ?? 0 });
      seen.push(...rows.map(({ id }) => id));
      if (isLast && rows.length === 0) return seen;
    }
  };
  const reading = Promise.all(nodes.map(read));
  await Promise.all(Array.from({ length: CREATORS }, (_, creator) => create(creator)));
  isOver = true;
  return { created: created.sort((a, b) => a - b), seen: await reading };
}

test('a reader that goes on from the last id it saw misses no item that two nodes add meanwhile', async () => {
  const { created, seen } = await createAndRead(await startNodes(await createTestDatabase()));
  expect(created).toHaveLength(CREATES);
  for (const ids of seen) expect(ids).toEqual(created);
});

test('beside a transaction that is left open and one that is prepared, a reader misses at most what these insert', async () => {
  const server = await PostgresServer.start({ max_prepared_transactions: '1' });
  onTestFinished(() => server.close());
  const nodes = await startNodes(server.url);
  const other = new pg.Client(server.url);
  await other.connect();
  onTestFinished(() => other.end());
  const insert = (name: string) => other.query(insertSql('$1'), [name]);
  await other.query('BEGIN');
  await insert('Prepared');
  await other.query("PREPARE TRANSACTION 'left'");
  await other.query('BEGIN');
  await insert('Open');
  const { created, seen } = await createAndRead(nodes);
  expect(created).toHaveLength(CREATES);
  for (const ids of seen) expect(ids).toEqual(created);
  await other.query('COMMIT');
  await other.query("COMMIT PREPARED 'left'");
});

import { createCaller, post } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { create, insertSql, list, OTHER_TABLE, read, TABLE } from '#operations-under-test';
import { PostgresServer } from '../support/postgres-server.js';
import { runKeys, UNREACHED_LIMITS } from '../support/process.js';
import { startService, type TestService } from '../support/test-service.js';

/** As docs/database.md asks for: keys have a subscription of their own. */
const PUBLICATIONS = { keys: 'api_keys', store: `${TABLE}, ${OTHER_TABLE}` };

let publisher: PostgresServer;
let subscriber: PostgresServer;
/** Its database is that of the subscriber. */
let service: TestService;

beforeAll(async () => {
  publisher = await PostgresServer.start({ wal_level: 'logical' });
  subscriber = await PostgresServer.start();
  for (const [name, tables] of Object.entries(PUBLICATIONS)) {
    await publisher.query(`CREATE PUBLICATION ${name} FOR TABLE ${tables}`);
    await subscriber.query(
      `CREATE SUBSCRIPTION ${name} CONNECTION '${publisher.conninfo}' PUBLICATION ${name}`,
    );
  }
  service = await startService({ databaseUrl: subscriber.url });
});
afterAll(async () => {
  await service.close();
  await subscriber.close();
  await publisher.close();
});

/** Issues a key on the publisher. `status` is that of a request with it to the service, which knows it by then. */
async function issueKey() {
  const environment = { DATABASE_URL: publisher.url };
  const { id, key } = await runKeys(environment, 'create', '--name', 'x', ...UNREACHED_LIMITS);
  const status = async () => (await createCaller({ url: service.url, key })(list.path)).status;
  await expect.poll(status).toBe(200);
  return { id, status };
}

async function insertItem(server: PostgresServer): Promise<number> {
  const [item] = await server.query<{ id: number }>(`${insertSql("'By SQL'")} RETURNING id::int`);
  return item?.id as number;
}

test.for([
  ['revoked', 'UPDATE api_keys SET revoked_at = now()'],
  ['deleted', 'DELETE FROM api_keys'],
] as const)(
  'a key that is %s where replication comes from is refused where it leads to, with triggers or without',
  async ([, sql], { annotate }) => {
    const { id, status } = await issueKey();
    await subscriber.query('ALTER TABLE api_keys DISABLE TRIGGER USER');
    await publisher.query(`${sql} WHERE id = '${id}'`);
    const changedAt = performance.now();
    await expect.poll(status).toBe(401);
    await annotate(`refused after ${Math.round(performance.now() - changedAt)} ms`);
  },
);

test('items that both servers add are readable where replication leads to, once their ids are apart', async () => {
  const call = createCaller(service);
  for (const [server, id] of [
    [publisher, 1],
    [subscriber, 2],
  ] as const)
    await server.query(`ALTER TABLE ${TABLE} ALTER COLUMN id SET INCREMENT BY 2 RESTART WITH ${1000 + id}`);
  for (let n = 0; n < 3; n += 1) {
    const id = await insertItem(publisher);
    await expect.poll(async () => (await call(read.pathOf(id))).status).toBe(200);
    expect((await call(create.path, post(create.body))).status).toBe(201);
  }
});

test('items that have the same id on both servers do not hold up what happens to keys', async () => {
  const { id, status } = await issueKey();
  const restart = `ALTER TABLE ${TABLE} ALTER COLUMN id RESTART WITH 2000`;
  for (const server of [subscriber, publisher]) {
    await server.query(restart);
    await insertItem(server);
  }
  const countErrors = async () => {
    const sql = `SELECT apply_error_count::int AS count FROM pg_stat_subscription_stats WHERE subname = 'store'`;
    return (await subscriber.query<{ count: number }>(sql))[0]?.count;
  };
  await expect.poll(countErrors).toBeGreaterThan(0);
  await publisher.query(`UPDATE api_keys SET revoked_at = now() WHERE id = '${id}'`);
  await expect.poll(status).toBe(401);
});

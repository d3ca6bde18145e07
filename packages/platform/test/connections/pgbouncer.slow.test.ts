import { type Caller, createCaller, post } from '@animal-store/platform/testing';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { create, list, OTHER_TABLE, otherList, read, TABLE } from '#operations-under-test';
import { openConnections } from '../../src/connections/connections.js';
import { startKeyServer } from '../support/key-server.js';
import { hasPgbouncer, Pgbouncer } from '../support/pgbouncer.js';
import { PostgresServer } from '../support/postgres-server.js';
import { runKeys } from '../support/process.js';
import { startService, type TestService } from '../support/test-service.js';

const PASSWORD = 'secret';
const POOL_SIZE = 4;
/** The role as docs/configuration.md describes it. Its time zone is another than the service's. */
const ROLE = `
  CREATE ROLE store LOGIN PASSWORD '${PASSWORD}' IN ROLE pg_read_all_data, pg_write_all_data;
  ALTER ROLE store SET statement_timeout = '1200ms';
  ALTER ROLE store SET idle_in_transaction_session_timeout = '5s';
  ALTER ROLE store SET timezone = 'America/New_York'`;

let server: PostgresServer;
let pgbouncer: Pgbouncer;
let databaseUrl: string;
let service: TestService;
let call: Caller;

describe.skipIf(!hasPgbouncer())('PgBouncer in transaction mode', () => {
  beforeAll(async () => {
    server = await PostgresServer.start();
    await server.query(ROLE);
    pgbouncer = await Pgbouncer.start(server, { user: 'store', password: PASSWORD, poolSize: POOL_SIZE });
    const url = new URL(server.urlOf('store', PASSWORD));
    url.port = String(pgbouncer.port);
    databaseUrl = url.href;
  });
  afterAll(async () => {
    await pgbouncer.close();
    await server.close();
  });
  beforeEach(async () => {
    service = await startService({ databaseUrl });
    call = createCaller(service);
  });
  afterEach(() => service.close());

  let sent = 0;
  /** One request of each kind, for all pools. */
  const sendOneOfEach = () => {
    sent += 1;
    return Promise.all([
      call(list.path),
      call(`${list.path}?${list.filterQuery}&limit=1`),
      call(read.pathOf(1)),
      call(otherList.path),
      call(create.trpc, post(create.body)),
      call(create.path, post(create.body)),
      call(create.path, post(create.body, { 'idempotency-key': `create-${sent}` })),
      call(create.path, post(create.body, { 'idempotency-key': `create-${sent}` })),
    ]);
  };
  const statusesOf = async (requests: ReturnType<typeof sendOneOfEach>) =>
    (await requests).map(({ status }) => status);

  const sendTenOfEach = () => Promise.all(Array.from({ length: 10 }, () => statusesOf(sendOneOfEach())));
  const lock = async (tables: string) => {
    const locker = new pg.Client(server.url);
    await locker.connect();
    await locker.query(`BEGIN; LOCK TABLE ${tables}`);
    return { release: () => locker.end() };
  };
  const countServerConnections = async () =>
    (await server.query("SELECT 1 FROM pg_stat_activity WHERE usename = 'store'")).length;

  test('requests of all kinds on more connections than it has to the server get their answers', async () => {
    const countItems = async () => {
      const rows = await server.query<{ count: string }>(`SELECT count(*) FROM ${TABLE}`);
      return Number(rows[0]?.count);
    };
    // While queries wait for the tables, the next ones need the other connections. Those that wait for too long are a 503.
    let before = 0;
    const sendWhileLocked = async (): Promise<number[][]> => {
      before = await countItems();
      const locked = await lock(`${TABLE}, ${OTHER_TABLE}`);
      const since = performance.now();
      const answers = sendTenOfEach();
      await expect.poll(countServerConnections, { interval: 10 }).toBe(POOL_SIZE);
      await locked.release();
      const wasShort = performance.now() - since < 1_000;
      return wasShort ? answers : answers.then(sendWhileLocked);
    };
    await call(create.path, post(create.body));
    const answers = await sendWhileLocked();
    for (let round = 1; round < 10; round += 1) answers.push(...(await sendTenOfEach()));
    expect(answers).toEqual(Array(100).fill([200, 200, 200, 200, 200, 201, 201, 201]));
    expect(await countServerConnections()).toBe(POOL_SIZE);
    expect(await countItems()).toBe(before + 100 * 3);
  });

  test('as many connections as 64 processes may open share those to the server', async () => {
    const processes = Array.from({ length: 64 }, () =>
      openConnections(databaseUrl, () => {}, { connectTimeoutMs: 30_000 }),
    );
    // Otherwise the first would be closed, idle, before the last are open.
    const held: pg.PoolClient[] = [];
    try {
      const one = { name: 'one', text: `SELECT id::int FROM ${TABLE} ORDER BY id LIMIT 1` };
      await call(create.path, post(create.body));
      // One process after the other: what opens many connections at once is this machine, not the pooler.
      for (const { pool, reads, writes, keys } of processes) {
        const answers = await Promise.all([
          ...Array.from({ length: pool.size }, async () => {
            const client = await pool.connect();
            held.push(client);
            return (await client.query(one.text)).rows;
          }),
          ...[reads, writes, keys].flatMap((each) =>
            Array.from({ length: each.pool.options.max }, () => each.query(one, [])),
          ),
        ]);
        expect(answers.every(([row]) => row?.id === 1)).toBe(true);
      }
      const open = processes.reduce((sum, { countConnections }) => sum + countConnections('totalCount'), 0);
      expect(open).toBe(64 * 12);
      expect(await countServerConnections()).toBe(POOL_SIZE);
    } finally {
      for (const client of held) client.release();
      await Promise.all(processes.map(({ close }) => close()));
    }
  });

  test('times are stored and read in UTC on every connection', async () => {
    const expiresAt = new Date(Date.now() + 60_000);
    const key = { name: 'short', plan: 'free', perMinute: null, perDay: null, expiresAt } as const;
    const issued = await Promise.all(Array.from({ length: 20 }, () => service.keys.create(key)));
    const stored = await server.query<{ expires_at: Date }>(
      "SELECT expires_at FROM api_keys WHERE name = 'short'",
    );
    expect(stored.map(({ expires_at }) => expires_at)).toEqual(issued.map(() => expiresAt));
    const lists = await Promise.all(Array.from({ length: 20 }, () => service.keys.list()));
    const listed = lists.flat().filter(({ name }) => name === 'short');
    expect(new Set(listed.map((each) => each.expiresAt?.getTime()))).toEqual(new Set([expiresAt.getTime()]));
    for (const { key: value } of issued) expect((await call(list.path, { key: value })).status).toBe(200);
  });

  test('the commands work, and leave no setting of theirs to the service', async () => {
    const environment = { DATABASE_URL: databaseUrl };
    const readTimeouts = () =>
      Promise.all(
        Array.from({ length: 20 }, async () => {
          const { rows } = await service.serviceDatabase.pool.query('SHOW statement_timeout');
          return rows[0]?.statement_timeout;
        }),
      );
    const before = new Set(await readTimeouts());
    const { id, key } = await runKeys(environment, 'create', '--name', 'cli', '--plan', 'free');
    expect((await call(list.path, { key })).status).toBe(200);
    expect((await runKeys(environment, 'usage', id)).id).toBe(id);
    expect((await runKeys(environment, 'revoke', id)).state).toBe('revoked');
    expect(new Set(await readTimeouts())).toEqual(before);
  });

  test('keys serve works: deliveries at once make one key, and the record names it', async () => {
    const own = await startKeyServer({ DATABASE_URL: databaseUrl });
    onTestFinished(async () => void (await own.stop()));
    const delivery = { owner: 'pooled', name: 'x', plan: 'pro', once: true };
    const answers = await Promise.all(Array.from({ length: 20 }, () => own.keys('create', delivery)));
    const [issued, ...more] = answers.filter(({ body }) => body.isNew);
    expect([answers.map(({ status }) => status), more]).toEqual([Array(20).fill(200), []]);
    expect((await call(list.path, { key: issued?.body.key })).status).toBe(200);
    const { body } = await own.keys('history', { id: issued?.body.id });
    expect(body).toMatchObject([{ applicationName: expect.stringContaining('keys serve') }]);
    expect((await fetch(`${own.url}/health/ready`)).status).toBe(200);
    expect(await own.stop()).toBe(0);
  });

  test('a locked table: PostgreSQL ends the statements, and it is served again when it is free', async () => {
    const locked = await lock(TABLE);
    const whileLocked = await statusesOf(sendOneOfEach());
    expect(whileLocked).toEqual([503, 503, 503, expect.any(Number), 503, 503, 503, 503]);
    await expect.poll(async () => (await call(otherList.path)).status).toBe(200);
    await locked.release();
    await expect.poll(async () => (await call(list.path)).status).toBe(200);
  });

  test.for(['PgBouncer', 'PostgreSQL'])(
    '%s is killed and started again: 503, and back',
    async (killed, { annotate }) => {
      const process = killed === 'PgBouncer' ? pgbouncer : server;
      expect((await call(create.path, post(create.body))).status).toBe(201);
      await process.end('SIGKILL');
      const whileDown = await Promise.all(Array.from({ length: 3 }, () => statusesOf(sendOneOfEach())));
      expect(new Set(whileDown.flat())).toEqual(new Set([503]));
      await process.run();
      const startedAt = performance.now();
      const all = async () => new Set(await statusesOf(sendOneOfEach()));
      await expect.poll(all, { interval: 20 }).toEqual(new Set([200, 201]));
      await annotate(`served again after ${Math.round(performance.now() - startedAt)} ms`);
    },
  );
});

describe.skipIf(!hasPgbouncer())('PgBouncer in statement mode', () => {
  test('is not ready: it takes each statement by itself, which no transaction survives, and readiness says so', async () => {
    const postgres = await PostgresServer.start();
    await postgres.query(ROLE);
    const options = { user: 'store', password: PASSWORD, poolSize: POOL_SIZE, mode: 'statement' } as const;
    const pooler = await Pgbouncer.start(postgres, options);
    const url = new URL(postgres.urlOf('store', PASSWORD));
    url.port = String(pooler.port);
    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    const ofStatements = await startService({ databaseUrl: url.href, log });
    const ready = async () => (await fetch(`${ofStatements.url}/health/ready`)).status;
    await expect.poll(ready).toBe(503);
    // Requests that keep its connections busy do not hide it.
    const callStatements = createCaller(ofStatements);
    const busy = Array.from({ length: 40 }, () => callStatements(create.path, post(create.body)));
    expect(await Promise.all(Array.from({ length: 10 }, ready))).toEqual(Array(10).fill(503));
    await Promise.all(busy);
    await expect
      .poll(() => lines.join(''))
      .toMatch(/transaction blocks not allowed in statement pooling mode/);
    await ofStatements.close();
    await pooler.close();
    await postgres.close();
  });
});

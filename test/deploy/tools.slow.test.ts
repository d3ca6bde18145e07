import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Caller,
  createCaller,
  createTemporaryFolder,
  execute,
  post,
  runCommand,
} from '@animal-store/platform/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { create, list, OTHER_TABLE, otherList, read, TABLE, TYPES } from '#operations-under-test';
import { addSampleData } from '../../packages/platform/src/database/open-database.js';
import { hasPgbouncer, Pgbouncer } from '../../packages/platform/test/support/pgbouncer.js';
import { hasPostgresTools, SystemPostgres } from '../../packages/platform/test/support/system-postgres.js';
import { definition } from '../../src/definition/definition.js';
import { startService, type TestService } from '../support/service.js';

const isPossible = hasPostgresTools() && hasPgbouncer();

let server: SystemPostgres;
let poolers: Readonly<Record<'session' | 'transaction', Pgbouncer>>;
let folder: string;

/** Requests of all kinds, one after the other in each of several streams, with when each failed. */
function startRequests(call: Caller) {
  const failures: { readonly status: number; readonly at: number }[] = [];
  let sent = 0;
  let isOver = false;
  const requests = [
    () => call(`${list.path}?limit=2`),
    () => call(`${list.path}?limit=2&${list.filterQuery}`),
    () => call(read.pathOf(1)),
    () => call(`${otherList.path}?limit=2`),
    () => call(create.path, post(create.body)),
    () => call(create.path, post(create.body, { 'idempotency-key': `key-${Math.random()}` })),
    () => call('/v1/key'),
  ];
  const running = Promise.all(
    requests.map(async (request) => {
      while (!isOver) {
        const { status } = await request();
        sent += 1;
        if (![200, 201, 404].includes(status)) failures.push({ status, at: performance.now() });
      }
    }),
  );
  return {
    failures,
    countSent: () => sent,
    async stop() {
      isOver = true;
      await running;
    },
  };
}

/** Statements that drop and create the types of a table's columns, which keep their values. */
async function writeTypesAnew(url: string): Promise<string> {
  const columns = await execute<{ name: string; type: string; initial: string | null; labels: string }>(
    url,
    `SELECT quote_ident(attname) AS name, quote_ident(typname) AS type, pg_get_expr(adbin, adrelid) AS initial,
       (SELECT string_agg(quote_literal(enumlabel), ', ' ORDER BY enumsortorder)
        FROM pg_enum WHERE enumtypid = pg_type.oid) AS labels
     FROM pg_attribute
     JOIN pg_type ON pg_type.oid = atttypid
     LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
     WHERE attrelid = $1::regclass AND typname = ANY ($2)`,
    [TABLE, TYPES],
  );
  expect(new Set(columns.map(({ type }) => type))).toEqual(new Set(TYPES));
  const statements = columns.flatMap(({ name, type, initial, labels }) => [
    `ALTER TABLE ${TABLE} ALTER ${name} DROP DEFAULT, ALTER ${name} TYPE text`,
    `DROP TYPE ${type}`,
    `CREATE TYPE ${type} AS ENUM (${labels})`,
    `ALTER TABLE ${TABLE} ALTER ${name} TYPE ${type} USING ${name}::${type}`,
    ...(initial === null ? [] : [`ALTER TABLE ${TABLE} ALTER ${name} SET DEFAULT ${initial}`]),
  ]);
  return statements.join('; ');
}

describe.skipIf(!isPossible)('tools of PostgreSQL under load', () => {
  beforeAll(async () => {
    server = await SystemPostgres.start();
    folder = await createTemporaryFolder();
    const start = (mode: 'session' | 'transaction') =>
      Pgbouncer.start(server, {
        user: 'animal_store',
        password: 'x',
        poolSize: mode === 'session' ? 60 : 6,
        mode,
      });
    poolers = { session: await start('session'), transaction: await start('transaction') };
  });
  afterAll(async () => {
    await poolers.session.close();
    await poolers.transaction.close();
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  describe.each(['directly', 'session', 'transaction'] as const)('the service connects: %s', (how) => {
    let url: string;
    let service: TestService;
    let call: Caller;

    beforeEach(async () => {
      url = server.urlOf(how === 'directly' ? undefined : poolers[how].port);
      service = await startService({ databaseUrl: url });
      call = createCaller(service);
      await addSampleData(definition, service.database);
      await dumpAt(server.urlOf());
    });
    afterEach(() => service.close());

    /** PostgreSQL ends one of two that wait for each other. If that is the tool, it is started again. */
    const runTool = async (command: string, ...args: readonly string[]): Promise<void> => {
      const program = runCommand(command, args, {}, {});
      const status = await program.ended;
      if (status !== 0 && program.output().includes('deadlock detected')) return runTool(command, ...args);
      expect(status, program.output()).toBe(0);
    };
    /** Ends with 1 where requests have written to a table before its rows are restored. */
    const restoreInSteps = async () => {
      const program = runCommand(
        'pg_restore',
        ['--clean', '--if-exists', '-d', server.urlOf(), dump()],
        {},
        {},
      );
      expect([0, 1], program.output()).toContain(await program.ended);
    };
    const dump = () => join(folder, 'dump');
    const dumpAt = (address: string) => runTool('pg_dump', '-Fc', '-f', dump(), address);
    const sql = (text: string) => () => execute(server.urlOf(), `SET statement_timeout = 0; ${text}`);
    /** Each with the statuses that are right while it runs, besides 503. */
    const TOOLS: readonly {
      readonly name: string;
      readonly run: () => Promise<unknown>;
      readonly also?: number[];
    }[] = [
      { name: 'pg_dump where the service connects', run: () => dumpAt(url) },
      {
        name: 'pg_dumpall',
        run: () => runTool('pg_dumpall', '-f', join(folder, 'all'), '-d', server.urlOf()),
      },
      {
        name: 'pg_restore --clean --single-transaction',
        run: () =>
          runTool(
            'pg_restore',
            '--clean',
            '--if-exists',
            '--single-transaction',
            '-d',
            server.urlOf(),
            dump(),
          ),
      },
      {
        // Until the keys are back, there are none.
        name: 'pg_restore --clean',
        run: restoreInSteps,
        also: [401],
      },
      {
        name: 'pg_restore --data-only --disable-triggers',
        async run() {
          await sql(`TRUNCATE ${OTHER_TABLE}`)();
          await runTool(
            'pg_restore',
            '--data-only',
            '--disable-triggers',
            '-t',
            OTHER_TABLE,
            '-d',
            server.urlOf(),
            dump(),
          );
        },
      },
      { name: 'VACUUM FULL', run: () => runTool('vacuumdb', '--full', '-d', server.urlOf()) },
      { name: 'REINDEX', run: () => runTool('reindexdb', '-d', server.urlOf()) },
      {
        name: 'ALTER TABLE … ADD COLUMN',
        run: sql(`
          ALTER TABLE ${TABLE} ADD COLUMN colour text; ALTER TABLE api_keys ADD COLUMN colour text;
          ALTER TABLE ${TABLE} DROP COLUMN colour; ALTER TABLE api_keys DROP COLUMN colour`),
      },
      {
        name: 'DROP TYPE and CREATE TYPE',
        run: async () => sql(await writeTypesAnew(server.urlOf()))(),
      },
      {
        name: 'DISCARD ALL where the service connects',
        run: () => Promise.all(Array.from({ length: 12 }, () => execute(url, 'DISCARD ALL'))),
      },
    ];

    test.for(TOOLS)(
      '$name: never a 500, and all is well again when it has ended',
      async ({ run, also = [] }, { annotate }) => {
        const load = startRequests(call);
        await expect.poll(load.countSent).toBeGreaterThan(100);
        const startedAt = performance.now();
        let endedAt = startedAt;
        let settled = 0;
        try {
          await run();
          endedAt = performance.now();
          const isReady = async () => (await call('/health/ready', { key: null })).status;
          await expect.poll(isReady).toBe(200);
          // What was waiting when it ended is answered by then.
          const before = load.countSent();
          await expect.poll(load.countSent).toBeGreaterThan(before + 50);
          settled = load.failures.length;
          const after = load.countSent();
          await expect.poll(load.countSent).toBeGreaterThan(after + 200);
        } finally {
          await load.stop();
        }
        const last = load.failures.at(-1);
        await annotate(
          `${load.countSent()} requests, ${load.failures.length} failed, the last ${last ? Math.round(last.at - endedAt) : '-'} ms after the end; it took ${Math.round(endedAt - startedAt)} ms`,
        );
        expect(load.failures.filter(({ status }) => ![503, ...also].includes(status))).toEqual([]);
        expect(load.failures.length).toBe(settled);
      },
    );
  });
});

import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { applyMigrations, OperatorError } from '@animal-store/platform/development';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { check } from '../src/check.js';
import { draft } from '../src/draft.js';
import { withMigrated } from '../src/schema-difference.js';
import type { Store } from '../src/store.js';
import { createDatabase, createProject, execute, load, openServer, write } from './support.js';

let server: Awaited<ReturnType<typeof openServer>>;
beforeAll(async () => {
  server = await openServer();
});
afterAll(() => server.close());

/** Drafts, and returns the SQL of the migrations that were written, in their order. */
async function draftSql(store: Store, name: string): Promise<string[]> {
  const lines = await draft(store, server.url, name);
  const paths = lines.flatMap((line) => /^wrote (prisma\/migrations\/.*\.sql)$/.exec(line)?.[1] ?? []);
  return Promise.all(paths.map((path) => readFile(new URL(path, store.root), 'utf8')));
}

/** A database with the migrations of a project */
async function migrate(folder: string): Promise<string> {
  const url = await createDatabase(server.url);
  await applyMigrations(url, join(folder, 'prisma/migrations'));
  return url;
}

const insertKey = (plan: string, perMinute: number | null, scopes = 'DEFAULT') => `
  INSERT INTO api_keys (name, hash, hint, plan, per_minute, per_day, scopes)
  VALUES ('x', sha256(random()::text::bytea), 'h', '${plan}', ${perMinute}, ${perMinute}, ${scopes}) RETURNING scopes`;

test('in an empty project a draft has all that the schema and the definition say, and a second one has nothing', async () => {
  const folder = await createProject();
  const store = await load(folder);
  await draft(store, server.url, 'first');
  const url = await migrate(folder);
  // The turn of the table, and an id that PostgreSQL assigns
  expect(await execute(url, 'SELECT * FROM insert_turns')).toEqual([{ table_name: 'boats' }]);
  expect(await execute(url, "INSERT INTO boats (name) VALUES ('Grebe') RETURNING *")).toEqual([
    { id: '1', name: 'Grebe', status: 'for_sale' },
  ]);
  await expect(execute(url, "INSERT INTO boats (id, name) VALUES (9, 'Grebe')")).rejects.toThrow(
    /non-DEFAULT value into column "id"/,
  );
  // Plans in the order of the definition, limits of their own in `custom` alone, and the scopes
  const [enumeration] = await execute(url, 'SELECT enum_range(NULL::plan)::text AS plans');
  expect(enumeration).toEqual({ plans: '{trial,custom}' });
  expect(await execute(url, insertKey('trial', null))).toEqual([{ scopes: store.definition.scopes }]);
  expect(await execute(url, insertKey('custom', 5))).toHaveLength(1);
  for (const statement of [insertKey('trial', 5), insertKey('custom', null)])
    await expect(execute(url, statement)).rejects.toThrow(/api_keys_limits_of_custom/);
  await expect(execute(url, insertKey('trial', null, "'{boats:sink}'"))).rejects.toThrow(/scopes_known/);

  const before = await readdir(join(folder, 'prisma/migrations'));
  expect(await draft(store, server.url, 'second')).toEqual([expect.stringMatching(/^Nothing to draft/)]);
  expect(await readdir(join(folder, 'prisma/migrations'))).toEqual(before);
});

test('plans, a scope and a table that are added are drafted with what depends on them, so that the migrations run', async () => {
  const folder = await createProject();
  const store = await load(folder);
  await draft(store, server.url, 'first');
  const plans = { trial: { perMinute: 30 }, club: { perMinute: 60 }, custom: undefined, fleet: undefined };
  const later = await load(folder, { plans, scopes: ['boats:read', 'boats:write', 'piers:read'] });
  const { definition, resources } = later;
  const schema = await readFile(join(folder, 'prisma/schema.prisma'), 'utf8');
  const added = `
    model Pier {
      id   BigInt @id @default(autoincrement())
      @@map("piers")
    }`;
  const changed = schema
    .replace('sold\n', 'sold\n    sunk\n')
    .replace('@default(for_sale)', '@default(sunk)');
  await write(folder, { 'prisma/schema.prisma': changed + added });
  const lines = await draft(later, server.url, 'piers');
  expect(lines).toContain('wrote prisma/platform.prisma');
  expect(lines.at(-1)).toMatch(/^The grants of the definition lack piers: .*piers: \['SELECT'/);
  const [values = '', rest = ''] = await Promise.all(
    lines
      .flatMap((line) => /^wrote (.*\.sql)$/.exec(line)?.[1] ?? [])
      .map((path) => readFile(join(folder, path), 'utf8')),
  );
  expect(values.match(/ADD VALUE '\w+'/g)).toEqual([
    `ADD VALUE 'club'`,
    `ADD VALUE 'fleet'`,
    `ADD VALUE 'sunk'`,
  ]);
  expect(rest).toContain('-- * The grants of the definition lack piers');
  expect(rest).toContain(`"scopes" || ARRAY['piers:read']`);
  expect(await readFile(join(folder, 'prisma/platform.prisma'), 'utf8')).toMatch(/club\n +custom\n +fleet\n/);

  const url = await migrate(folder);
  const [enumeration] = await execute(url, 'SELECT enum_range(NULL::plan)::text AS plans');
  expect(enumeration).toEqual({ plans: '{trial,club,custom,fleet}' });
  expect(await execute(url, insertKey('fleet', 5))).toEqual([{ scopes: definition.scopes }]);
  await expect(execute(url, insertKey('club', 5))).rejects.toThrow(/api_keys_limits_of_custom_fleet/);
  expect(await check({ ...later, resources }, server.url)).toMatchObject({ isGreen: true });
});

test('plans that are taken away are drafted so that the migration runs, unless a key has one of them', async () => {
  const folder = await createProject();
  const plans = { trial: { perMinute: 30 }, club: { perMinute: 60 }, custom: undefined, fleet: undefined };
  await draft(await load(folder, { plans }), server.url, 'first');
  const url = await migrate(folder);
  await execute(url, insertKey('fleet', 5));
  const others = { trial: { perMinute: 30 }, gold: { perMinute: 90 }, custom: undefined };
  const fewer = await load(folder, { plans: others });
  const sql = (await draftSql(fewer, 'fewer')).at(-1);
  expect(sql).toMatch(/^-- \* It fails while a key has the plan club or fleet: /m);
  expect(sql).not.toMatch(/does not run|BEGIN|COMMIT/);
  const apply = () => applyMigrations(url, join(folder, 'prisma/migrations'));
  await expect(apply()).rejects.toThrow(/invalid input value for enum plan_new: "fleet"/);
  await execute(url, "UPDATE api_keys SET plan = 'custom'");
  await execute(url, 'DELETE FROM _prisma_migrations WHERE finished_at IS NULL');
  await apply();
  const [enumeration] = await execute(url, 'SELECT enum_range(NULL::plan)::text AS plans');
  expect(enumeration).toEqual({ plans: '{trial,gold,custom}' });
  await expect(execute(url, insertKey('gold', 5))).rejects.toThrow(/api_keys_limits_of_custom/);
  expect(await check(fewer, server.url)).toMatchObject({ isGreen: true });
});

test('a constraint on limits that a store has written in other words is not drafted again', async () => {
  const folder = await createProject();
  const store = await load(folder);
  await draft(store, server.url, 'first');
  await write(folder, {
    'prisma/migrations/29990101000000_other/migration.sql': `
      ALTER TABLE api_keys DROP CONSTRAINT api_keys_limits_of_custom,
        ADD CONSTRAINT of_custom CHECK (CASE plan WHEN 'custom' THEN per_minute IS NOT NULL ELSE per_minute IS NULL END),
        ADD CONSTRAINT of_each CHECK (plan IS NULL OR (per_minute IS NULL) = (per_day IS NULL))`,
  });
  expect(await draft(store, server.url, 'second')).toEqual([expect.stringMatching(/^Nothing to draft/)]);
  // Only where they say the same of every plan
  const plans = { trial: { perMinute: 30 }, custom: { perMinute: 60 } };
  const [sql] = await draftSql({ ...store, definition: { ...store.definition, plans } }, 'third');
  expect(sql).toMatch(
    /DROP CONSTRAINT "of_custom",\s+DROP CONSTRAINT "of_each",\s+ADD CONSTRAINT "api_keys_limits_of_none"/,
  );
});

test('drafts come after the last migration, and say at their head why they would fail, also on rows that no migration adds', async () => {
  const folder = await createProject();
  const store = await load(folder);
  await draft(store, server.url, 'first');
  await write(folder, {
    'prisma/migrations/29990101000000_boats/migration.sql': "INSERT INTO boats (name) VALUES ('Grebe');",
    'prisma/schema.prisma': (await readFile(join(folder, 'prisma/schema.prisma'), 'utf8')).replace(
      'name   String',
      'name   String\n    metres Int',
    ),
  });
  const [sql] = await draftSql(store, 'length');
  expect((await readdir(join(folder, 'prisma/migrations'))).sort().at(-1)).toBe('29990101000001_length');
  expect(sql).toMatch(/^-- \* It does not run as it is: column "metres" .* contains null values\.$/m);
  expect(sql).toMatch(/^-- \* It fails where the table has rows, .* give metres a DEFAULT\.$/m);
  // Nor does the schema that has one
  const schema = await readFile(join(folder, 'prisma/schema.prisma'), 'utf8');
  await write(folder, { 'prisma/schema.prisma': schema.replace('metres Int', 'metres Int @default(0)') });
  await rm(join(folder, 'prisma/migrations/29990101000001_length'), { recursive: true });
  expect((await draftSql(store, 'length'))[0]).not.toMatch(/It (?:fails|does not run)/);
});

test('a draft with a role that may create no database fails on one line that says what to do', async () => {
  const store = await load(await createProject());
  await execute(server.url, "CREATE ROLE tools_guest LOGIN PASSWORD 'guest'");
  onTestFinished(async () => void (await execute(server.url, 'DROP ROLE tools_guest')));
  const url = new URL(server.url);
  [url.username, url.password] = ['tools_guest', 'guest'];
  const attempt = draft(store, url.href, 'new');
  await expect(attempt).rejects.toBeInstanceOf(OperatorError);
  await expect(attempt).rejects.toThrow(/^This needs a database .*permission denied.*DATABASE_URL[^\n]*$/);
});

test('the temporary database is dropped, also after a failure', async () => {
  const migrations = join(await createProject(), 'prisma');
  const names: string[] = [];
  const fail = (url: string) => {
    names.push(new URL(url).pathname.slice(1));
    return Promise.reject(new Error('failed'));
  };
  await expect(withMigrated(server.url, migrations, fail)).rejects.toThrow('failed');
  const left = `SELECT FROM pg_database WHERE datname = '${names}'`;
  expect([names.length, await execute(server.url, left)]).toEqual([1, []]);
});

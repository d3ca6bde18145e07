import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { applyMigrations, describeService } from '@animal-store/platform/development';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { check } from '../src/check.js';
import { draft } from '../src/draft.js';
import { findDrift } from '../src/schema-difference.js';
import type { Store } from '../src/store.js';
import { createDatabase, createProject, execute, load, openServer, write } from './support.js';

let server: Awaited<ReturnType<typeof openServer>>;
beforeAll(async () => {
  server = await openServer();
});
afterAll(() => server.close());

/** A project that agrees with itself */
async function createChecked() {
  const folder = await createProject();
  const store = await load(folder);
  await draft(store, server.url, 'first');
  return { folder, store };
}

/** The lines of what is red */
async function listReds(store: Store): Promise<string[]> {
  const { lines, isGreen } = await check(store, server.url);
  const reds = lines.filter((line) => line.startsWith('RED'));
  expect(isGreen).toBe(reds.length === 0);
  return reds;
}

const print = ({ definition, resources }: Store) =>
  JSON.stringify(
    describeService({ definition, resources, publicUrl: 'https://harbour.example', stagingUrl: undefined })
      .document,
  );

test('a store without a document and a release is green, and the check says that there is none', async () => {
  const { store } = await createChecked();
  const { lines, isGreen } = await check(store, server.url);
  expect(isGreen).toBe(true);
  expect(lines.join('\n')).toMatch(/no docs\/openapi\.json.*\n.*docs\/releases has no document/);
});

test('each part that disagrees is red, with the command that mends it', async () => {
  const { folder, store } = await createChecked();
  const scopes = [...store.definition.scopes, 'boats:sink'] as const;
  const reds = await listReds({ ...store, definition: { ...store.definition, scopes } });
  expect(reds).toEqual([expect.stringMatching(/platform\.prisma.*node dist\/cli\.js platform/)]);

  const schema = join(folder, 'prisma/schema.prisma');
  const text = await readFile(schema, 'utf8');
  await writeFile(schema, text.replace('name   String', 'name   String\n    colour String?'));
  expect(await listReds(store)).toEqual([expect.stringMatching(/npm run draft -- NAME\n.*[\s\S]*colour/)]);
  await writeFile(schema, text);

  const identity = {
    ...store.definition.identity,
    grants: { boats: ['SELECT'], rafts: ['SELECT'] },
  } as const;
  expect(await listReds({ ...store, definition: { ...store.definition, identity } })).toEqual([
    expect.stringMatching(/rafts, which no migration creates.*npm run draft -- NAME/),
  ]);

  await write(folder, { 'docs/openapi.json': print(store) });
  expect(await listReds(store)).toEqual([]);
  const { resources } = store;
  const [boats] = resources;
  if (boats === undefined) throw new Error('no resource');
  const { createBoat: _, ...procedures } = boats.procedures;
  const fewer = { ...store, resources: [{ ...boats, procedures }] };
  expect(await listReds(fewer)).toEqual([
    expect.stringMatching(
      /docs\/openapi\.json is not the document.*node dist\/cli\.js openapi >docs\/openapi/,
    ),
  ]);

  await mkdir(join(folder, 'docs/releases'));
  for (const version of ['1.9.0', '1.10.0'])
    await write(folder, { [`docs/releases/${version}.json`]: print(store) });
  await write(folder, { 'docs/openapi.json': print(fewer) });
  expect(await listReds(fewer)).toEqual([
    expect.stringMatching(
      /POST \/v1\/boats: it is gone[\s\S]*docs\/releases\/1\.10\.0\.json: 1 breaking changes/,
    ),
  ]);
  await rm(join(folder, 'docs'), { recursive: true });
  expect(await listReds(fewer)).toEqual([]);
});

test.each(['public', 'own'])(
  'a migrated database in the schema %s has no drift, and each table, column, type and index that differs is named',
  async (schema) => {
    const { folder } = await createChecked();
    const target = new URL(await createDatabase(server.url));
    target.searchParams.set('schema', schema);
    const url = target.href;
    const prisma = join(folder, 'prisma');
    await applyMigrations(url, join(prisma, 'migrations'));
    expect(await findDrift(url, prisma)).toBeUndefined();
    await execute(
      url,
      `SET search_path = ${schema};
      CREATE TABLE rafts (id bigint PRIMARY KEY);
      ALTER TABLE api_keys ADD COLUMN colour text;
      ALTER TABLE api_keys DROP COLUMN owner CASCADE;
      ALTER TABLE idempotent_creates ALTER COLUMN batch_index TYPE integer;
      DROP INDEX api_key_usage_day_idx;
      ALTER TYPE plan RENAME VALUE 'custom' TO 'special'`,
    );
    const drift = await findDrift(url, prisma);
    for (const name of ['rafts', 'colour', 'owner', 'batch_index', '(day)', 'special'])
      expect(drift).toContain(name);
  },
);

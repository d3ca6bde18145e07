import { randomBytes } from 'node:crypto';
import { execute } from '@animal-store/platform/testing';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runInProcess } from '../support/process.js';
import { readRoles } from '../support/roles.js';
import { createTestDatabase } from '../support/test-service.js';

/** The names of the roles begin with it. The service's has this one. */
const SERVICE = `store_${randomBytes(4).toString('hex')}`;
/** A role that somebody has created without roles.sql */
const OTHER = `${SERVICE} "other"`;
let url: string;
let script: string;

beforeEach(async () => {
  url = await createTestDatabase();
  // What psql would send before it creates the database.
  [script = ''] = readRoles(SERVICE)
    .replaceAll(/^\\.*$/gm, '')
    .replaceAll(/:'(\w+)'/g, "'$1'")
    .split('CREATE DATABASE');
  await execute(url, `${script}; CREATE ROLE ${pg.escapeIdentifier(OTHER)} LOGIN PASSWORD 'other'`);
});
afterEach(async () => {
  const quoted = [...(await readSettings()).keys()].map((name) => pg.escapeIdentifier(name)).join(', ');
  await execute(url, `DROP OWNED BY ${quoted}; DROP ROLE ${quoted}`);
});

/** By the name of the role, as `name=value` */
async function readSettings(): Promise<ReadonlyMap<string, readonly string[] | null>> {
  const rows = await execute<{ name: string; settings: string[] | null }>(
    url,
    'SELECT rolname AS name, rolconfig AS settings FROM pg_roles WHERE starts_with(rolname, $1)',
    [SERVICE],
  );
  return new Map(rows.map(({ name, settings }) => [name, settings]));
}

async function grant(role: string, option = '--grant-to'): Promise<string> {
  const { code, output } = await runInProcess(['migrate', option, role], { DATABASE_URL: url });
  expect([code, output]).toEqual([0, expect.stringContaining(`granted "${role}"`)]);
  return output;
}
const listStatements = (output: string) => output.match(/^ALTER .*;$/gm) ?? [];

test('whoever follows the advice of --grant-to, as the role itself, gives it the settings of the roles of roles.sql', async () => {
  const advice = listStatements(await grant(OTHER));
  const own = Object.assign(new URL(url), { username: encodeURIComponent(OTHER), password: 'other' });
  await execute(own.href, advice.join(''));
  const { [OTHER]: advised = expect.unreachable(), ...roles } = Object.fromEntries(await readSettings());
  expect(advised?.length).toBe(advice.length);
  expect(Object.keys(roles)).toHaveLength(script.match(/^CREATE ROLE/gm)?.length ?? 0);
  for (const [name, settings] of Object.entries(roles)) {
    // pg_dump, which runs as the owner, may stop reading for longer than the service.
    const expected = name.endsWith('_owner')
      ? advised?.map((setting) => setting.replace(/^(tcp_user_timeout)=.*/, '$1=5min'))
      : advised;
    expect(settings, name).toEqual(expected);
  }
  expect(listStatements(await grant(OTHER))).toEqual([]);
});

test('--grant-to and --grant-keys-to advise what a role lacks, unless the role or the database has a value of its own', async () => {
  for (const option of ['--grant-to', '--grant-keys-to']) {
    expect(await grant(OTHER, option)).toContain(`cuts silently`);
    expect(listStatements(await grant(SERVICE, option))).toEqual([]);
  }
  expect(listStatements(await grant(OTHER, '--grant-read-to'))).toEqual([]);
  const database = pg.escapeIdentifier(new URL(url).pathname.slice(1));
  await execute(url, `ALTER DATABASE ${database} SET tcp_user_timeout = '1min'`);
  await execute(url, `ALTER ROLE ${pg.escapeIdentifier(OTHER)} SET tcp_keepalives_count = 9`);
  expect(listStatements(await grant(OTHER)).map((line) => /SET (\w+)/.exec(line)?.[1])).toEqual([
    'tcp_keepalives_idle',
    'tcp_keepalives_interval',
  ]);
});

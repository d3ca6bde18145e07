import { execute } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { KEY_STATES } from '../../src/keys/api-key.js';
import { runInProcess, runKeys } from '../support/process.js';
import { createTestDatabase } from '../support/test-service.js';

/** One more than a command reads at once */
const MANY = 10_001;

let environment: { DATABASE_URL: string };
beforeAll(async () => {
  environment = { DATABASE_URL: await createTestDatabase() };
});

const insert = (columns: string, select: string) =>
  execute(
    environment.DATABASE_URL,
    `INSERT INTO api_keys (hash, hint, plan, name, ${columns})
     SELECT sha256(gen_random_uuid()::text::bytea), 'by_test_abcd', 'free', ${select}`,
  );

test('keys list finds the keys in a state by what it shows as their state', async () => {
  const moments = `(VALUES (NULL), (now() - interval '1 h'), (now() + interval '1 h'))`;
  await insert(
    'owner, revoked_at, expires_at, banned_until',
    `'a key', 'in every state', revoked, expires, banned
     FROM ${moments} AS a (revoked), ${moments} AS b (expires), ${moments} AS c (banned)`,
  );
  const find = (...options: readonly string[]) =>
    runKeys(environment, 'list', '--owner', 'in every state', ...options);
  const all: readonly { state: string }[] = await find();
  expect(all).toHaveLength(27);
  for (const state of KEY_STATES) {
    const expected = all.filter((each) => each.state === state);
    expect(expected.length).toBeGreaterThan(0);
    expect(await find('--state', state)).toEqual(expected);
  }
});

test('keys list shows each key once, oldest first, however many there are and were created at one moment', async () => {
  await insert(
    'owner, created_at',
    `'key ' || n, 'many', timestamptz '2026-01-01Z' + n / 5000 * interval '1 ms' FROM generate_series(1, ${MANY}) AS n`,
  );
  const listed: readonly { id: string; createdAt: string }[] = await runKeys(
    environment,
    ...['list', '--owner', 'many'],
  );
  expect(new Set(listed.map(({ id }) => id)).size).toBe(MANY);
  const order = listed.map(({ createdAt, id }) => `${createdAt} ${id}`);
  expect(order).toEqual([...order].sort());
  const { output } = await runInProcess(['keys', 'list', '--owner', 'many'], environment);
  const lines = output.trimEnd().split('\n');
  expect(lines).toHaveLength(MANY + 1);
  expect(new Set(lines.map((line) => line.indexOf(line.startsWith('ID') ? 'STATE' : 'active'))).size).toBe(1);
});

test('keys list of nothing is the titles of its columns, or an empty array', async () => {
  expect(await runKeys(environment, 'list', '--owner', 'nobody')).toEqual([]);
  const { code, output } = await runInProcess(['keys', 'list', '--owner', 'nobody'], environment);
  expect([code, output]).toEqual([0, expect.stringMatching(/^ID .* STATE\n$/)]);
});

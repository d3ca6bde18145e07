import { execute } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { KEY_STATES, stateOf } from '../../src/keys/api-key.js';
import { useService } from '../support/test-service.js';

const { service } = useService();

const NOW = new Date('2026-11-20T12:00:00.000Z');
/** NULL, before, at and after the moment */
const MOMENTS = [undefined, -1, 0, 1].map(
  (ms) => ms !== undefined && new Date(NOW.getTime() + ms).toISOString(),
);

test('a key has the same state where SQL selects it as where a command shows it, whatever its dates', async () => {
  const rows = MOMENTS.flatMap((revoked) =>
    MOMENTS.flatMap((expires) => MOMENTS.map((banned) => [revoked, expires, banned])),
  );
  const values = rows.map((row, n) => {
    const dates = row.map((each) => (each ? `'${each}'::timestamptz` : 'NULL'));
    return `('of states', sha256('${n}'), 'by_test_abcd', 'free', ${dates.join(', ')})`;
  });
  await execute(
    service.databaseUrl,
    `INSERT INTO api_keys (name, hash, hint, plan, revoked_at, expires_at, banned_until) VALUES ${values.join(', ')}`,
  );
  const isOurs = ({ name }: { name: string }) => name === 'of states';
  const all = (await service.keys.list()).filter(isOurs);
  expect(all).toHaveLength(64);
  for (const state of KEY_STATES) {
    const selected = (await service.keys.list({ state, at: NOW })).filter(isOurs).map(({ id }) => id);
    const shown = all.filter((each) => stateOf(each, NOW.getTime()) === state).map(({ id }) => id);
    expect(selected).not.toEqual([]);
    expect([state, selected]).toEqual([state, shown]);
  }
});

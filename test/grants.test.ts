import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { listGrants } from '../packages/platform/src/migrations/grants.js';
import { IDENTITY } from '../src/definition/identity.js';

const grants = listGrants(IDENTITY.grants);

test('the document has the grants that the command applies', () => {
  const rows = [
    ...readFileSync('docs/database.md', 'utf8').matchAll(
      /^\| `(\w+)` \| ([A-Z, ]+) \|[^|]*\|([A-Z, ]+)\|([^|]*)\|$/gm,
    ),
  ];
  const service = rows.map(([, table = '', privileges = '']) => [table, privileges.split(', ')]);
  expect(Object.fromEntries(service)).toEqual(grants.service);
  const keys = rows.flatMap(([, table = '', , privileges = '']) =>
    privileges.trim() === '' ? [] : [[table, privileges.trim().split(', ')]],
  );
  expect(Object.fromEntries(keys)).toEqual(grants.keys);
  const readable = rows.filter(([, , , , analyst = '']) => analyst.trim().startsWith('SELECT'));
  expect(readable.map(([, table]) => table).sort()).toEqual(Object.keys(grants.read).sort());
});

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createInSchema } from '../../src/connections/schema-name.js';
import { createListStatement } from '../../src/tables/read-statements.js';
import { table } from '../../src/tables/table.js';
import { compactSql } from '../support/compact-sql.js';

interface Boat {
  readonly id: number;
  readonly harbour: string;
  readonly status: 'afloat' | 'ashore';
}

test('the SQL that is shown beside the statement of filtered pages is what the statement becomes', () => {
  const source = readFileSync('packages/platform/src/tables/read-statements.ts', 'utf8');
  const [, shown = ''] = /`harbour` and `status`:\n \*\n((?: \* {5}.*\n)+)/.exec(source) ?? [];
  const boats = table<Boat, Omit<Boat, 'id'>>('boats', {
    id: 'bigint',
    harbour: 'text',
    status: 'boat_status',
  });
  const rows = { inSchema: createInSchema('public'), table: boats, where: 'true' };
  expect(compactSql(shown.replaceAll(/^ \*/gm, ''))).toBe(
    compactSql(createListStatement(rows, ['harbour', 'status'], 'oldest').text),
  );
});

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createInSchema } from '../../src/connections/schema-name.js';
import { keyedRowsSql } from '../../src/tables/insert-statements.js';
import { table } from '../../src/tables/table.js';
import { compactSql } from '../support/compact-sql.js';

test('the SQL that is shown beside the statement of keyed creates is what the statement becomes', () => {
  const source = readFileSync('packages/platform/src/tables/insert-statements.ts', 'utf8');
  const [, shown = ''] = /a column `name`:\n \*\n((?: \* {5}.*\n)+)/.exec(source) ?? [];
  const boats = table<{ id: number; name: string }, { name: string }>('boats', {
    id: 'bigint',
    name: 'text',
  });
  expect(compactSql(shown.replaceAll(/^ \*/gm, ''))).toBe(
    compactSql(keyedRowsSql(boats, createInSchema('public'))),
  );
});

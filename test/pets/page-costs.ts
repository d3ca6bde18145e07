import { expect } from 'vitest';
import { execute } from '../support/execute.js';
import { countPagesRead } from '../support/explain.js';
import { startService } from '../support/test-service.js';

/** Nearly all animals are available and in category 5. Others of either kind are rare, and of some there are none. */
const SKEWED = `
  INSERT INTO pets (name, status, category_id)
  SELECT 'Pet ' || n, CASE n % 500 WHEN 0 THEN 'pending' WHEN 1 THEN 'sold' ELSE 'available' END::pet_status,
    CASE WHEN n % 50 < 5 THEN n % 50 WHEN n % 50 < 10 THEN n % 7 + 6 ELSE 5 END
  FROM generate_series(1, 60000) AS n`;
const LIMIT = 20;
/** Each row of a page may lie on a page of the table of its own, and an index is two or three levels deep. */
const MAX_PAGES_READ = LIMIT + 12;

const STATUSES = ['available', 'pending', 'sold'];
const CATEGORIES = [0, 5, 9, 99];
/** Each combination of filters, by the name of its statement */
const FILTERS: readonly (readonly [statement: string, values: readonly (readonly unknown[])[]])[] = [
  ['pets-list', [[]]],
  ['pets-list-by-status', STATUSES.map((status) => [status])],
  ['pets-list-by-categoryId', CATEGORIES.map((category) => [category])],
  [
    'pets-list-by-status-categoryId',
    STATUSES.flatMap((status) => CATEGORIES.map((category) => [status, category])),
  ],
];
/** The ids after which a page is full where anything matches, after which it may be the last one, and after which it is empty */
const CURSORS = [0, 30_000, 59_900, 60_000];

/**
 * Expects that no page of a large catalogue takes PostgreSQL more than a few pages of its own, whatever it is filtered by,
 * and whether it is full, the last or empty: in a plan that was made for few animals, and in one that was made for many.
 *
 * @param databaseUrl of the owner of a database without animals
 */
export async function expectFlatPages(databaseUrl: string): Promise<void> {
  const readAll = async () => {
    const service = await startService({ databaseUrl });
    const { pool } = service.serviceDatabase.reads;
    await service.serviceDatabase.checkStatements();
    return {
      close: () => service.close(),
      async find() {
        const found: string[] = [];
        for (const [statement, filters] of FILTERS)
          for (const values of filters)
            for (const cursor of CURSORS) {
              const parameters = [cursor, LIMIT, ...values].map((value) => `'{${value}}'`).join(', ');
              const count = await countPagesRead(pool, statement, parameters);
              if (count > MAX_PAGES_READ) found.push(`${statement} (${parameters}): ${count}`);
            }
        return found;
      },
    };
  };
  const early = await readAll();
  await execute(databaseUrl, SKEWED);
  await execute(databaseUrl, 'VACUUM ANALYZE pets');
  const late = await readAll();
  expect([await early.find(), await late.find()]).toEqual([[], []]);
  await early.close();
  await late.close();
}

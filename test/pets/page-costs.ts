import { createCaller, execute } from '@animal-store/platform/testing';
import { expect } from 'vitest';
import { countPagesRead } from '../../packages/platform/test/support/explain.js';
import { ORDER_STATUSES } from '../../src/order-progress.js';
import { startService } from '../support/service.js';

/** Nearly all animals are available and in category 5. Others of either kind are rare, and of some there are none. */
const SKEWED = `
  INSERT INTO pets (name, status, category_id)
  SELECT 'Pet ' || n, CASE n % 500 WHEN 0 THEN 'pending' WHEN 1 THEN 'sold' ELSE 'available' END::pet_status,
    CASE WHEN n % 50 < 5 THEN n % 50 WHEN n % 50 < 10 THEN n % 7 + 6 ELSE 5 END
  FROM generate_series(1, 60000) AS n`;
/** Nearly all orders are closed. Animal 1 has 3,000 of them, and some animals have none. */
const SKEWED_ORDERS = `
  INSERT INTO orders (pet_id, status)
  SELECT CASE WHEN n % 20 = 0 THEN 1 ELSE n END,
    CASE n % 500 WHEN 40 THEN 'cancelled' WHEN 3 THEN 'placed' WHEN 1 THEN 'approved' ELSE 'delivered' END::order_status
  FROM generate_series(1, 60000) AS n`;
const LIMIT = 20;
/** Each row of a page may lie on a page of the table of its own, and an index is two or three levels deep. */
const MAX_PAGES_READ = LIMIT + 12;

const STATUSES = ['available', 'pending', 'sold'];
const CATEGORIES = [0, 5, 9, 99];
const PETS = [1, 2, 20, 59_999];
type Values = readonly (readonly unknown[])[];
const one = (all: readonly unknown[]): Values => all.map((each) => [each]);
const both = (all: readonly unknown[], others: readonly unknown[]): Values =>
  all.flatMap((each) => others.map((other) => [each, other]));
/** No order is after it: what a page passes over comes on top. */
const BOUND = '2100-01-01T00:00:00Z';
const BEFORE = `createdBefore=${BOUND}`;
/** Each combination of filters, by the name of its statement, and a request for it */
const FILTERS: readonly (readonly [statement: string, path: string, values: Values])[] = [
  ['pets-list', '/v1/pets?order=newest', [[]]],
  ['pets-list-by-status', '/v1/pets?order=newest&status=sold', one(STATUSES)],
  ['pets-list-by-categoryId', '/v1/pets?order=newest&categoryId=5', one(CATEGORIES)],
  [
    'pets-list-by-status-categoryId',
    '/v1/pets?order=newest&status=sold&categoryId=5',
    both(STATUSES, CATEGORIES),
  ],
  ['orders-list', '/v1/store/orders?order=newest', [[]]],
  ['orders-list-by-status', '/v1/store/orders?order=newest&status=placed', one(ORDER_STATUSES)],
  ['orders-list-by-petId', '/v1/store/orders?order=newest&petId=1', one(PETS)],
  [
    'orders-list-by-status-petId',
    '/v1/store/orders?order=newest&status=placed&petId=1',
    both(ORDER_STATUSES, PETS),
  ],
  ['orders-list-before-createdAt', `/v1/store/orders?order=newest&${BEFORE}`, [[BOUND]]],
  [
    'orders-list-by-status-before-createdAt',
    `/v1/store/orders?order=newest&status=placed&${BEFORE}`,
    both(ORDER_STATUSES, [BOUND]),
  ],
  [
    'orders-list-by-petId-before-createdAt',
    `/v1/store/orders?order=newest&petId=1&${BEFORE}`,
    both(PETS, [BOUND]),
  ],
  [
    'orders-list-by-status-petId-before-createdAt',
    `/v1/store/orders?order=newest&status=placed&petId=1&${BEFORE}`,
    both(ORDER_STATUSES, PETS).map((values) => [...values, BOUND]),
  ],
];
/** The ids after which a page is full where anything matches, after which it may be the last one, and after which it is empty */
const CURSORS = [0, 30_000, 59_900, 60_000];
/** The same by descending id */
const CURSORS_OF_NEWEST = [2 ** 53, 30_000, 100, 1];
const ORDERS = [
  ['', CURSORS],
  ['-newest', CURSORS_OF_NEWEST],
] as const;

/**
 * Expects that no page of a large catalogue, or of many orders, takes PostgreSQL more than a few pages of its own, whatever it is filtered by,
 * and whether it is full, the last or empty: in a plan that was made for few animals, and in one that was made for many.
 *
 * @param databaseUrl of the owner of a database without animals and orders
 */
export async function expectFlatPages(databaseUrl: string): Promise<void> {
  const readAll = async () => {
    const service = await startService({ databaseUrl });
    const { pool } = service.serviceDatabase.reads;
    const call = createCaller(service);
    for (const path of FILTERS.flatMap(([, newest]) => [newest, newest.replace('newest', 'oldest')]))
      expect([path, (await call(path)).status]).toEqual([path, 200]);
    return {
      close: () => service.close(),
      async find() {
        const found: string[] = [];
        const statements = FILTERS.flatMap(([name, , filters]) =>
          ORDERS.flatMap(([order, cursors]) =>
            filters.flatMap((values) =>
              cursors.map((cursor) => [name + order, [cursor, LIMIT, ...values]] as const),
            ),
          ),
        );
        for (const [statement, values] of statements) {
          const parameters = values.map((value) => `'{${value}}'`).join(', ');
          const count = await countPagesRead(pool, statement, parameters);
          if (count > MAX_PAGES_READ) found.push(`${statement} (${parameters}): ${count}`);
        }
        return found;
      },
    };
  };
  const early = await readAll();
  await execute(databaseUrl, SKEWED);
  await execute(databaseUrl, SKEWED_ORDERS);
  await execute(databaseUrl, 'VACUUM ANALYZE pets, orders');
  const late = await readAll();
  expect([await early.find(), await late.find()]).toEqual([[], []]);
  await early.close();
  await late.close();
}

import type pg from 'pg';
import { withClient } from '../postgres.js';
import { printTable } from '../table.js';
import type { GrowthOptions } from './options.js';
import { openSizes } from './sized-services.js';
import { timeAlternately } from './timing.js';

const SIZES = [100_000, 1_000_000, 10_000_000];
const ROUNDS = 20;
const LIMIT = 20;

/**
 * Which index finds a page fast depends on how status and age are related. Here every third pet is pending, whatever
 * its age; of the others the older nine tenths are sold and the newest are available, as in a store that has been open
 * for a while.
 */
const filters = {
  'no filter': undefined,
  'pending: every third': 'pending',
  'sold: the older ones': 'sold',
  'available: the newest': 'available',
} as const;

/** The time to read a page of 20 at the first and at the deepest cursor. */
export async function growPages({ sizes = SIZES, rounds = ROUNDS }: GrowthOptions): Promise<void> {
  const { services, close } = await openSizes(sizes, addPets);
  try {
    const calls = new Map<string, () => Promise<unknown>>();
    for (const [filter, status] of Object.entries(filters)) {
      for (const { size, databaseUrl, pets } of services) {
        const deepest = await findDeepestCursor(databaseUrl, status);
        calls.set(`${filter} first ${size}`, () => pets.list({ limit: LIMIT, status }));
        calls.set(`${filter} deepest ${size}`, () => pets.list({ limit: LIMIT, status, cursor: deepest }));
      }
    }
    const times = await timeAlternately(calls, rounds);
    report(sizes, (filter, depth, size) => times.get(`${filter} ${depth} ${size}`) ?? Number.NaN);
  } finally {
    await close();
  }
}

type TimeOf = (filter: string, depth: 'first' | 'deepest', size: number | undefined) => number;

function report(sizes: readonly number[], timeOf: TimeOf): void {
  const ratio = (a: number, b: number) => (a / b).toFixed(2);
  const smallest = sizes[0];
  printTable(
    [
      'page of 20, µs',
      'pets',
      'first',
      'deepest',
      'deepest / first',
      'first / smallest',
      'deepest / smallest',
    ],
    Object.keys(filters).flatMap((filter) =>
      sizes.map((size) => {
        const first = timeOf(filter, 'first', size);
        const deepest = timeOf(filter, 'deepest', size);
        return [
          filter,
          size,
          Math.round(first),
          Math.round(deepest),
          ratio(deepest, first),
          ratio(first, timeOf(filter, 'first', smallest)),
          ratio(deepest, timeOf(filter, 'deepest', smallest)),
        ];
      }),
    ),
  );
}

/** Creates the index on statuses after the rows, which is faster than updating it with each row. */
async function addPets(client: pg.Client, size: number): Promise<void> {
  const { rows } = await client.query<{ indexdef: string }>(
    `SELECT indexdef FROM pg_indexes WHERE indexname = 'pets_status_id_idx'`,
  );
  await client.query('DROP INDEX pets_status_id_idx');
  await client.query(
    `INSERT INTO pets (name, category_id, status)
    SELECT 'Pet number ' || n, n % 100 + 1,
      CASE WHEN n % 3 = 0 THEN 'pending' WHEN n <= 0.9 * $1::int THEN 'sold' ELSE 'available' END::pet_status
    FROM generate_series(1, $1::int) AS n`,
    [size],
  );
  await client.query(rows[0]?.indexdef ?? '');
  await client.query('VACUUM ANALYZE pets');
}

/** The cursor that exactly one full page follows. */
async function findDeepestCursor(databaseUrl: string, status: string | undefined): Promise<number> {
  const { rows } = await withClient(databaseUrl, (client) =>
    client.query<{ id: string }>(
      'SELECT id FROM pets WHERE status = $1 OR $1 IS NULL ORDER BY id DESC OFFSET $2 LIMIT 1',
      [status ?? null, LIMIT],
    ),
  );
  return Number(rows[0]?.id);
}

import type pg from 'pg';
import { createPetStore } from '../../src/pets/store.js';
import { printTable } from '../table.js';
import { openSizes } from './databases.js';
import { timeInTurns } from './turns.js';

const SIZES = [100_000, 1_000_000, 10_000_000];
const LIMIT = 20;

/**
 * What a status has to do with age decides which index finds a page soon: every third pet is pending, wherever it
 * stands; of the others the older nine tenths are sold and the newest available, as in a store that has been open for
 * a while.
 */
const filters = {
  'no filter': undefined,
  'pending: every third': 'pending',
  'sold: the older ones': 'sold',
  'available: the newest': 'available',
} as const;

/** Time per page of 20 at the first and at the deepest cursor. Options: `--sizes=N,N`, `--rounds=N`. */
export async function growPages(options: ReadonlyMap<string, string>): Promise<void> {
  const sizes = options.get('sizes')?.split(',').map(Number) ?? SIZES;
  const { databases, close } = await openSizes(sizes, fillPets);
  try {
    const calls = new Map<string, () => Promise<unknown>>();
    for (const [filter, status] of Object.entries(filters)) {
      for (const { size, database } of databases) {
        const store = createPetStore(database);
        const last = await findLastCursor(database.pool, status);
        calls.set(`${filter} first ${size}`, () => store.list({ limit: LIMIT, status }));
        calls.set(`${filter} deepest ${size}`, () => store.list({ limit: LIMIT, status, cursor: last }));
      }
    }
    const times = await timeInTurns(calls, Number(options.get('rounds') ?? 20));
    report(sizes, (filter, depth, size) => times.get(`${filter} ${depth} ${size}`) ?? Number.NaN);
  } finally {
    await close();
  }
}

type Find = (filter: string, depth: 'first' | 'deepest', size: number | undefined) => number;

function report(sizes: readonly number[], find: Find): void {
  const ratio = (a: number, b: number) => (a / b).toFixed(2);
  const least = sizes[0];
  printTable(
    ['page of 20, µs', 'pets', 'first', 'deepest', 'deepest / first', 'first / least', 'deepest / least'],
    Object.keys(filters).flatMap((filter) =>
      sizes.map((size) => {
        const first = find(filter, 'first', size);
        const deepest = find(filter, 'deepest', size);
        return [
          filter,
          size,
          Math.round(first),
          Math.round(deepest),
          ratio(deepest, first),
          ratio(first, find(filter, 'first', least)),
          ratio(deepest, find(filter, 'deepest', least)),
        ];
      }),
    ),
  );
}

/** The index on statuses is made after the load, which is quicker than keeping it up to date row by row. */
async function fillPets(client: pg.Client, size: number): Promise<void> {
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

/** The cursor that one whole page follows, and no more. */
async function findLastCursor(pool: pg.Pool, status: string | undefined): Promise<number> {
  const { rows } = await pool.query<{ id: string }>(
    'SELECT id FROM pets WHERE status = $1 OR $1 IS NULL ORDER BY id DESC OFFSET $2 LIMIT 1',
    [status ?? null, LIMIT],
  );
  return Number(rows[0]?.id);
}

import { parseArgs } from 'node:util';
import type pg from 'pg';
import { createPetStore } from '../src/pets/store.js';
import { type Database, openDatabase } from '../src/platform/connections/client.js';
import { hashKey } from '../src/platform/keys/format.js';
import { createKeyStore } from '../src/platform/keys/store.js';
import { THIS_CHECKOUT } from './checkout.js';
import { measureMemory } from './memory.js';
import { readNames, readNumber, readNumbers } from './option-values.js';
import { startPostgres, withClient } from './postgres.js';
import { median, printTable } from './table.js';

const OPTIONS = {
  /** Comma-separated parts */
  only: { type: 'string', default: 'pages,keys,memory' },
  /** Comma-separated numbers of rows. Default: those of each part */
  sizes: { type: 'string' },
  rounds: { type: 'string', default: '20' },
} as const;

const CALLS_PER_ROUND = 20;
/** PostgreSQL chooses between a generic and a custom plan after the first executions of a named statement. */
const WARM_UP_ROUNDS = 2;
const PAGE_SIZE = 20;

type Call = () => Promise<unknown>;

/** What is read from tables of several sizes. */
interface Part {
  readonly sizes: readonly number[];
  fill(client: pg.Client, size: number): Promise<void>;
  prepare(database: Database, size: number): Promise<Readonly<Record<string, Call>>>;
}

const parts: Readonly<Record<'pages' | 'keys', Part>> = {
  pages: { sizes: [100_000, 1_000_000, 10_000_000], fill: addPets, prepare: preparePages },
  keys: { sizes: [1_000, 1_000_000], fill: addKeys, prepare: prepareLookups },
};

/**
 * How the time to read a page and to look up a key changes as the store grows, and what the limits of many keys take. At
 * full size it takes some minutes, and about 3 GB of disk that are freed afterwards.
 */
export async function benchGrowth(args: string[]): Promise<void> {
  const { only, sizes, rounds } = parseArgs({ args, options: OPTIONS }).values;
  for (const name of readNames('only', only, ['pages', 'keys', 'memory'])) {
    if (name === 'memory') await measureMemory();
    else {
      const part = parts[name];
      const numbers = sizes === undefined ? part.sizes : readNumbers('sizes', sizes);
      await growPart(part, numbers, readNumber('rounds', rounds));
    }
  }
}

async function growPart(part: Part, sizes: readonly number[], rounds: number): Promise<void> {
  const postgres = await startPostgres();
  const databases: Database[] = [];
  const calls: Readonly<Record<string, Call>>[] = [];
  try {
    for (const size of sizes) {
      process.stderr.write(`${size.toLocaleString('en')} rows\n`);
      const url = await postgres.createDatabase(`size_${size}`, THIS_CHECKOUT);
      await withClient(url, (client) => part.fill(client, size));
      const database = openDatabase(url, () => {});
      databases.push(database);
      calls.push(await part.prepare(database, size));
    }
    const names = Object.keys(calls[0] ?? {});
    const times = await timeAlternately(names, calls, rounds);
    printTable({
      headings: ['µs', ...sizes.map((size) => `${size.toLocaleString('en')} rows`), 'last / first'],
      rows: names.map((name, row) => {
        const medians = times[row] ?? [];
        const ratio = (medians.at(-1) ?? Number.NaN) / (medians[0] ?? Number.NaN);
        return [name, ...medians.map(Math.round), ratio.toFixed(2)];
      }),
    });
  } finally {
    for (const database of databases) await database.close();
    await postgres.close();
  }
}

/**
 * The median time of each call at each size, in microseconds. Every round times all of them, so that a change in the
 * machine's speed affects them alike.
 */
async function timeAlternately(
  names: readonly string[],
  calls: readonly Readonly<Record<string, Call>>[],
  rounds: number,
): Promise<number[][]> {
  const times = names.map(() => calls.map((): number[] => []));
  for (let round = 1 - WARM_UP_ROUNDS; round <= rounds; round += 1) {
    for (const [row, name] of names.entries()) {
      for (const [column, { [name]: call }] of calls.entries()) {
        for (let n = 0; n < CALLS_PER_ROUND; n += 1) {
          const startedAt = performance.now();
          await call?.();
          if (round > 0) times[row]?.[column]?.push((performance.now() - startedAt) * 1000);
        }
      }
    }
  }
  return times.map((row) => row.map(median));
}

/**
 * Which index finds a page fast depends on how a filter and age are related. Here every third pet is pending, whatever
 * its age; of the others the older nine tenths are sold and the newest are available, as in a store that has been open
 * for a while. The first hundredth of all pets is of category 0, and of the others every hundredth of category 1.
 */
const filters = {
  'no filter': {},
  'pending: every third': { status: 'pending' },
  'sold: the older ones': { status: 'sold' },
  'available: the newest': { status: 'available' },
  'category: the oldest': { categoryId: 0 },
  'category: every hundredth': { categoryId: 1 },
  'category and status': { categoryId: 1, status: 'available' },
} as const;

type PetFilter = Pick<Parameters<ReturnType<typeof createPetStore>['list']>[0], 'status' | 'categoryId'>;

/** Creates the indexes of filters after the rows, which is faster than updating them with each row. */
async function addPets(client: pg.Client, size: number): Promise<void> {
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(
    `SELECT indexname AS name, indexdef AS definition FROM pg_indexes WHERE tablename = 'pets' AND indexname <> 'pets_pkey'`,
  );
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`);
  await client.query(
    `INSERT INTO pets (name, category_id, status)
    SELECT 'Pet number ' || n, CASE WHEN n <= $1::int / 100 THEN 0 ELSE n % 100 + 1 END,
      CASE WHEN n % 3 = 0 THEN 'pending' WHEN n <= 0.9 * $1::int THEN 'sold' ELSE 'available' END::pet_status
    FROM generate_series(1, $1::int) AS n`,
    [size],
  );
  for (const { definition } of indexes) await client.query(definition);
  await client.query('VACUUM ANALYZE pets');
}

/** A page at the first and at the deepest cursor, which exactly one full page follows. */
async function preparePages(database: Database): Promise<Readonly<Record<string, Call>>> {
  const pets = createPetStore(database);
  const calls: Record<string, Call> = {};
  for (const [name, filter] of Object.entries<PetFilter>(filters)) {
    const { rows } = await database.pool.query<{ id: string }>(
      `SELECT id FROM pets WHERE (status = $1 OR $1 IS NULL) AND (category_id = $2 OR $2 IS NULL)
      ORDER BY id DESC OFFSET $3 LIMIT 1`,
      [filter.status ?? null, filter.categoryId ?? null, PAGE_SIZE],
    );
    const cursor = Number(rows[0]?.id);
    calls[`page of 20, ${name}, first`] = () => pets.list({ limit: PAGE_SIZE, ...filter });
    calls[`page of 20, ${name}, deepest`] = () => pets.list({ limit: PAGE_SIZE, ...filter, cursor });
  }
  return calls;
}

async function addKeys(client: pg.Client, size: number): Promise<void> {
  await client.query(
    `INSERT INTO api_keys (name, hash, hint, plan)
    SELECT 'Key number ' || n, sha256(convert_to('key ' || n, 'UTF8')), 'as_test_0000', 'pro'
    FROM generate_series(1, $1::int) AS n`,
    [size],
  );
  await client.query('VACUUM ANALYZE api_keys');
}

async function prepareLookups(database: Database, size: number): Promise<Readonly<Record<string, Call>>> {
  const keys = createKeyStore(database, 'as_test_');
  const exists = async (n: number) => (await keys.findByHashes([hashKey(`key ${n}`)]))[0] !== undefined;
  if (!(await exists(size)) || (await exists(size + 1))) throw new Error('The wrong keys are found');
  return {
    'look-up of a known key': () => exists(1 + Math.floor(Math.random() * size)),
    'look-up of an unknown key': () => exists(size + 1 + Math.floor(Math.random() * size)),
  };
}

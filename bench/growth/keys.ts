import { createHash } from 'node:crypto';
import type pg from 'pg';
import { createKeyStore } from '../../src/keys/store.js';
import { printTable } from '../table.js';
import { openSizes } from './databases.js';
import { timeInTurns } from './turns.js';

const SIZES = [1_000, 1_000_000];

/** Time to look a key up in the database, which the service does at most once a second for a key that is in use. */
export async function growKeys(options: ReadonlyMap<string, string>): Promise<void> {
  const { databases, close } = await openSizes(SIZES, fillKeys);
  try {
    const calls = new Map<string, () => Promise<unknown>>();
    for (const { size, database } of databases) {
      const store = createKeyStore(database, 'as_test_');
      const find = async (n: number) => (await store.findByHash(hash(n))) !== undefined;
      if (!(await find(size)) || (await find(size + 1))) throw new Error('The wrong keys are found');
      calls.set(`known ${size}`, () => find(1 + Math.floor(Math.random() * size)));
      calls.set(`unknown ${size}`, () => find(size + 1 + Math.floor(Math.random() * size)));
    }
    const times = await timeInTurns(calls, Number(options.get('rounds') ?? 20));
    const find = (kind: string, size = Number.NaN) => times.get(`${kind} ${size}`) ?? Number.NaN;
    printTable(
      ['look-up of a key, µs', ...SIZES.map((size) => `${size.toLocaleString('en')} keys`), 'ratio'],
      ['known', 'unknown'].map((kind) => [
        kind,
        ...SIZES.map((size) => Math.round(find(kind, size))),
        (find(kind, SIZES.at(-1)) / find(kind, SIZES[0])).toFixed(2),
      ]),
    );
  } finally {
    await close();
  }
}

const hash = (n: number) => createHash('sha256').update(`key ${n}`).digest();

async function fillKeys(client: pg.Client, size: number): Promise<void> {
  await client.query(
    `INSERT INTO api_keys (name, hash, start, plan)
    SELECT 'Key number ' || n, sha256(convert_to('key ' || n, 'UTF8')), 'as_test_0000', 'pro'
    FROM generate_series(1, $1::int) AS n`,
    [size],
  );
  await client.query('VACUUM ANALYZE api_keys');
}

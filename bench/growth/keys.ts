import { createHash } from 'node:crypto';
import type pg from 'pg';
import { printTable } from '../table.js';
import type { GrowthOptions } from './options.js';
import { openSizes } from './sized-services.js';
import { timeAlternately } from './timing.js';

const SIZES = [1_000, 1_000_000];
const ROUNDS = 20;

/** The time to look up a key in the database, which the service does once a second for a key in use. */
export async function growKeys({ sizes = SIZES, rounds = ROUNDS }: GrowthOptions): Promise<void> {
  const { services, close } = await openSizes(sizes, addKeys);
  try {
    const calls = new Map<string, () => Promise<unknown>>();
    for (const { size, keys } of services) {
      const exists = async (n: number) => (await keys.findByHashes([hashOf(n)]))[0] !== undefined;
      if (!(await exists(size)) || (await exists(size + 1))) throw new Error('The wrong keys are found');
      calls.set(`known ${size}`, () => exists(1 + Math.floor(Math.random() * size)));
      calls.set(`unknown ${size}`, () => exists(size + 1 + Math.floor(Math.random() * size)));
    }
    const times = await timeAlternately(calls, rounds);
    const timeOf = (kind: string, size = Number.NaN) => times.get(`${kind} ${size}`) ?? Number.NaN;
    printTable(
      ['lookup of a key, µs', ...sizes.map((size) => `${size.toLocaleString('en')} keys`), 'last / first'],
      ['known', 'unknown'].map((kind) => [
        kind,
        ...sizes.map((size) => Math.round(timeOf(kind, size))),
        (timeOf(kind, sizes.at(-1)) / timeOf(kind, sizes[0])).toFixed(2),
      ]),
    );
  } finally {
    await close();
  }
}

const hashOf = (n: number) => createHash('sha256').update(`key ${n}`).digest();

async function addKeys(client: pg.Client, size: number): Promise<void> {
  await client.query(
    `INSERT INTO api_keys (name, hash, start, plan)
    SELECT 'Key number ' || n, sha256(convert_to('key ' || n, 'UTF8')), 'as_test_0000', 'pro'
    FROM generate_series(1, $1::int) AS n`,
    [size],
  );
  await client.query('VACUUM ANALYZE api_keys');
}

import { parseArgs } from 'node:util';
import { openConnections } from '../packages/platform/src/connections/connections.js';
import type { FoundKey } from '../packages/platform/src/keys/api-key.js';
import { MAX_CHECKED_AT_ONCE } from '../packages/platform/src/keys/known-keys.js';
import { createKeyStore } from '../packages/platform/src/keys/store.js';
import { definition } from '../src/definition/definition.js';
import { THIS_CHECKOUT } from './checkout.js';
import { readNumber, readNumbers } from './option-values.js';
import { startPostgres, withClient } from './postgres.js';
import { printTable, writeTable } from './table.js';

const OPTIONS = {
  /** How many of the keys are in use; comma-separated numbers */
  keys: { type: 'string', default: '100,1000,10000' },
  stored: { type: 'string', default: '100000' },
  checks: { type: 'string', default: '200' },
  write: { type: 'boolean', default: false },
} as const;

const LOOKUP_SIZE = 50;

/** What it costs to check once which of the keys in use have changed, which every process does once a second. */
export async function benchKeys(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const [stored, checks] = [readNumber('stored', values.stored), readNumber('checks', values.checks)];
  const postgres = await startPostgres();
  const url = await postgres.createDatabase('keys', THIS_CHECKOUT);
  const { rows } = await withClient(url, async (client) => {
    await client.query(
      `INSERT INTO api_keys (name, hash, hint, plan)
      SELECT 'Key number ' || n, sha256(n::text::bytea), 'as_test_0000', 'pro' FROM generate_series(1, $1::int) AS n`,
      [stored],
    );
    await client.query('VACUUM ANALYZE api_keys');
    return client.query<{ hash: Buffer }>('SELECT hash FROM api_keys ORDER BY random()');
  });
  const connections = openConnections(url, () => {});
  const store = createKeyStore(connections, 'as_test_', definition.scopes);
  const inBatches = async <Item>(
    items: readonly Item[],
    size: number,
    run: (batch: Item[]) => Promise<unknown>,
  ) => {
    for (let start = 0; start < items.length; start += size) await run(items.slice(start, start + size));
  };
  const measure = async (run: () => Promise<unknown>, times: number) => {
    await run();
    const [cpuBefore, ownBefore] = [postgres.cpuTime(), process.cpuUsage()];
    for (let n = 0; n < times; n += 1) await run();
    const { user, system } = process.cpuUsage(ownBefore);
    return [postgres.cpuTime() - cpuBefore, user + system].map((us) => us / times / 1_000) as [
      number,
      number,
    ];
  };
  const lines: (readonly (string | number)[])[] = [];
  for (const count of readNumbers('keys', values.keys)) {
    const hashes = rows.slice(0, count).map(({ hash }) => hash);
    const found: FoundKey[] = [];
    await inBatches(hashes, LOOKUP_SIZE, async (batch) =>
      found.push(...(await store.findByHashes(batch)).filter((key) => key !== undefined)),
    );
    const check = () => inBatches(found, MAX_CHECKED_AT_ONCE, store.findChanged);
    const [ofPostgres, own] = await measure(check, checks);
    const usPerKey = (1_000 * ofPostgres) / count;
    lines.push([count, ofPostgres.toFixed(1), own.toFixed(1), usPerKey.toFixed(1)]);
  }
  const lookedUp = rows.slice(0, LOOKUP_SIZE).map(({ hash }) => hash);
  const [ofPostgres, own] = await measure(() => store.findByHashes(lookedUp), checks);
  process.stdout.write(
    `a lookup, ${LOOKUP_SIZE} a statement: ${((1_000 * ofPostgres) / LOOKUP_SIZE).toFixed(1)} µs of PostgreSQL, ${((1_000 * own) / LOOKUP_SIZE).toFixed(1)} of the service\n\n`,
  );
  await connections.close();
  await postgres.close();
  const headings = ['keys in use', 'PostgreSQL ms', 'service ms', 'µs of PostgreSQL per key'];
  printTable({ headings, rows: lines });
  if (values.write) writeTable('bench/CAPACITY.md', 'checks', { headings, rows: lines });
}

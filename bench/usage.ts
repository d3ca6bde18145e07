import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openConnections } from '../src/platform/connections/connections.js';
import { flushRegularly, UsageCounter } from '../src/platform/usage/counter.js';
import { createUsageStore } from '../src/platform/usage/store.js';
import { THIS_CHECKOUT } from './checkout.js';
import { readNumber } from './option-values.js';
import { startPostgres, withClient } from './postgres.js';
import { printTable, writeTable } from './table.js';

const OPTIONS = {
  nodes: { type: 'string', default: '64' },
  /** Shared by all nodes */
  keys: { type: 'string', default: '10000' },
  seconds: { type: 'string', default: '120' },
  write: { type: 'boolean', default: false },
} as const;

const SETTINGS = ['ALTER SYSTEM SET max_connections = 300'];
const OPERATION = 'getPet';
/** Until every node has opened its connection and stored usage once */
const WARM_UP_SECONDS = 29;

/** What it costs PostgreSQL when every node sees the same keys every second, and stores their usage. */
export async function benchUsage(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const [nodeCount, keyCount] = [readNumber('nodes', values.nodes), readNumber('keys', values.keys)];
  const secondsAtLeast = readNumber('seconds', values.seconds);
  const postgres = await startPostgres(SETTINGS);
  const url = await postgres.createDatabase('usage', THIS_CHECKOUT);
  const { rows: keys } = await withClient(url, (client) =>
    client.query<{ id: string }>(
      `INSERT INTO api_keys (name, hash, hint, plan)
      SELECT 'bench', sha256(n::text::bytea), 'as_test_0000', 'pro' FROM generate_series(1, $1::int) AS n RETURNING id`,
      [keyCount],
    ),
  );
  const failures: unknown[] = [];
  let [rows, waited] = [0, 0];
  const nodes = Array.from({ length: nodeCount }, () => {
    const observe = (seconds: number) => {
      waited = Math.max(waited, seconds * 1000);
    };
    const connections = openConnections(url, () => {}, { connectTimeoutMs: 10_000, observe });
    const store = createUsageStore(connections);
    const add: typeof store.add = async (given) => {
      await store.add(given);
      rows += given.length;
    };
    const counter = new UsageCounter({
      store: { add },
      operations: [OPERATION],
      now: Date.now,
      warn: (error) => failures.push(process.stderr.write(`${error}\n`)),
    });
    return { counter, connections, endFlushing: flushRegularly(counter) };
  });
  let [cpuBefore, startedAt] = [0, 0];
  for (let second = 0; second < WARM_UP_SECONDS + secondsAtLeast; second += 1) {
    if (second === WARM_UP_SECONDS) {
      [cpuBefore, startedAt, rows, waited] = [postgres.cpuTime(), performance.now(), 0, 0];
    }
    for (const { counter } of nodes) for (const { id } of keys) counter.count(id, [OPERATION]);
    await delay(1_000 - (performance.now() % 1_000));
  }
  const [cpu, seconds] = [postgres.cpuTime() - cpuBefore, (performance.now() - startedAt) / 1000];
  const [stored, failed] = [rows, failures.length];
  await Promise.all(nodes.map(({ endFlushing }) => endFlushing()));
  await Promise.all(nodes.map(({ counter }) => counter.close()));
  await Promise.all(nodes.map(({ connections }) => connections.close()));
  await postgres.close();
  const table = {
    headings: [
      'nodes',
      'keys',
      'counts/s',
      'µs of PostgreSQL per count',
      'of a core',
      'slowest statement ms',
      'failed',
    ],
    rows: [
      [
        ...[nodeCount, keyCount, Math.round(stored / seconds), (cpu / stored).toFixed(1)],
        `${((100 * cpu) / seconds / 1e6).toFixed(1)} %`,
        ...[Math.round(waited), failed],
      ],
    ],
  };
  printTable(table);
  if (values.write) writeTable('docs/capacity.md', 'usage', table);
}

import { parseArgs } from 'node:util';
import { freePort } from '@animal-store/limits/testing';
import { type Replica, startHaproxy } from '../packages/platform/test/support/haproxy.js';
import { createBackend } from './backend.js';
import { MIX } from './cases.js';
import { THIS_CHECKOUT } from './checkout.js';
import { readTreeCpuTime } from './cpu-time.js';
import { readNumber } from './option-values.js';
import { startPostgres } from './postgres.js';
import { sendLoad, startLoad } from './rounds.js';
import { leaveServerCore } from './server-process.js';
import { type BenchServer, startServer } from './servers.js';
import { printTable, type Table, writeTable } from './table.js';

const OPTIONS = {
  /** Requests a second of all processes together */
  rate: { type: 'string', default: '2000' },
  /** Of each measurement */
  seconds: { type: 'string', default: '20' },
  /** Writes the table of bench/CAPACITY.md */
  write: { type: 'boolean', default: false },
} as const;

const KEYS = 256;
const CONNECTIONS = 64;
const WARM_UP_SECONDS = 8;

/** What the proxy of compose.yaml costs at a fixed rate, and what is left when one of two processes is gone. */
export async function benchProxy(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const [rate, seconds] = [readNumber('rate', values.rate), readNumber('seconds', values.seconds)];
  leaveServerCore();
  const postgres = await startPostgres();
  const generator = startLoad();
  const backend = await createBackend(postgres, {
    name: 'current',
    checkout: THIS_CHECKOUT,
    keyCount: KEYS,
    withRedis: true,
  });
  const start = async (): Promise<BenchServer & { readonly replica: Replica }> => {
    const METRICS_PORT = String(await freePort());
    const server = await startServer('service', { current: backend, environment: { METRICS_PORT } });
    return { ...server, replica: { PORT: String(server.port), METRICS_PORT } };
  };
  const [lost, left] = [await start(), await start()];
  const proxy = await startHaproxy([lost.replica, left.replica]);
  const proxyPort = Number(new URL(proxy.url).port);
  const measure = async (name: string, servers: readonly BenchServer[], ports: readonly number[]) => {
    process.stderr.write(`${name}\n`);
    const load = (duration: number) =>
      sendLoad(generator, {
        caseIds: MIX,
        ports,
        keys: backend.keys.unlimited,
        connections: CONNECTIONS,
        requestsPerSecond: rate,
        seconds: duration,
      });
    const readCpu = () => ({
      ...backend.cpuTimes(),
      server: servers.reduce((sum, each) => sum + each.cpuTimes().server, 0),
      proxy: readTreeCpuTime(proxy.pid),
    });
    await load(WARM_UP_SECONDS);
    const before = readCpu();
    const { requests, sent, p99 } = await load(seconds);
    const after = readCpu();
    const cpu = (['server', 'proxy', 'postgres', 'redis'] as const).map((part) =>
      ((after[part] - before[part]) / sent).toFixed(0),
    );
    return [name, Math.round(requests / seconds), p99.toFixed(1), ...cpu];
  };
  const rows = [
    await measure('two processes, without a proxy', [lost, left], [lost.port, left.port]),
    await measure('two processes behind HAProxy', [lost, left], [proxyPort]),
  ];
  await lost.close();
  await proxy.until(1, 'DOWN');
  rows.push(await measure('one of them lost', [left], [proxyPort]));
  await left.close();
  await proxy.close();
  await backend.close();
  generator.disconnect();
  await postgres.close();
  const table: Table = {
    headings: ['behind', 'requests/s', 'p99 ms', 'service µs', 'HAProxy µs', 'PostgreSQL µs', 'Redis µs'],
    rows,
  };
  printTable(table);
  if (values.write) writeTable('bench/CAPACITY.md', 'proxy', table);
}

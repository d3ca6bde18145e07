import { rm } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { startRedis } from '../../test/support/redis.js';
import { createTemporaryFolder } from '../../test/support/temporary-folder.js';
import { THIS_CHECKOUT } from '../checkout.js';
import { readNumber, readNumbers } from '../option-values.js';
import { startPostgres } from '../postgres.js';
import { printTable } from '../table.js';
import { runSoak, type SoakReport } from './run-soak.js';

const OPTIONS = {
  requests: { type: 'string', default: '200000' },
  connections: { type: 'string', default: '1,64,256' },
} as const;

const MAX_PRINTED = 10;

/** Whether every response is right while clients and PostgreSQL break connections. Exits with 1 if not. */
export async function benchSoak(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const redis = await startRedis();
  if (redis === undefined) throw new Error('The soak needs a redis-server on the PATH');
  const postgres = await startPostgres();
  const folder = await createTemporaryFolder();
  try {
    const report = await runSoak({
      databaseUrl: await postgres.createDatabase('soak', THIS_CHECKOUT),
      redisUrl: redis.url,
      folder,
      requests: readNumber('requests', values.requests),
      connections: readNumbers('connections', values.connections),
    });
    printReport(report);
    if (report.problems.length > 0) process.exitCode = 1;
  } finally {
    await Promise.all([postgres.close(), redis.close(), rm(folder, { recursive: true })]);
  }
}

function printReport({ phases, cancels, terminations, stored, unacknowledged, problems }: SoakReport): void {
  const statuses = [...new Set(phases.flatMap(({ counts }) => [...counts.keys()]))].sort((a, b) => a - b);
  printTable(
    [
      'connections',
      'seconds',
      'requests',
      ...statuses.map((status) => (status === 0 ? 'killed' : `${status}`)),
    ],
    phases.map(({ name, seconds, counts }) => [
      name,
      seconds.toFixed(1),
      [...counts.values()].reduce((sum, count) => sum + count, 0),
      ...statuses.map((status) => counts.get(status) ?? 0),
    ]),
  );
  printTable(
    ['PostgreSQL', ''],
    [
      ['statements cancelled', cancels],
      ['connections terminated', terminations],
      ['pets created', stored],
      ['of these, not acknowledged', unacknowledged],
    ],
  );
  process.stdout.write(
    problems.length === 0
      ? 'No response was wrong.\n'
      : `${problems.length} wrong:\n${problems.slice(0, MAX_PRINTED).join('\n')}\n`,
  );
}

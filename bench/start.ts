import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { createTemporaryFolder } from '../test/support/temporary-folder.js';
import { THIS_CHECKOUT } from './checkout.js';
import { readNumber } from './option-values.js';
import { startPostgres } from './postgres.js';
import { median, printTable } from './table.js';

const OPTIONS = { rounds: { type: 'string', default: '3' } } as const;

/** The time from `npm start` until the service listens: for the first time on a new database, and later. */
export async function benchStart(args: string[]): Promise<void> {
  const rounds = readNumber('rounds', parseArgs({ args, options: OPTIONS }).values.rounds);
  const postgres = await startPostgres();
  const times: Record<string, [first: number[], later: number[]]> = {
    'embedded PostgreSQL': [[], []],
    DATABASE_URL: [[], []],
  };
  for (let round = 0; round < rounds; round += 1) {
    const dataDir = await createTemporaryFolder();
    const databaseUrl = await postgres.createDatabase(`round_${round}`, THIS_CHECKOUT);
    for (const occasion of [0, 1] as const) {
      times['embedded PostgreSQL']?.[occasion].push(await timeStart({ DATA_DIR: dataDir }));
      times.DATABASE_URL?.[occasion].push(await timeStart({ DATABASE_URL: databaseUrl }));
    }
    await rm(dataDir, { recursive: true });
  }
  await postgres.close();
  printTable({
    headings: ['ms until npm start listens', 'first', 'later'],
    rows: Object.entries(times).map(([name, both]) => [
      name,
      ...both.map((each) => Math.round(median(each))),
    ]),
  });
}

/** Returns the milliseconds that a start takes, and stops the service. */
async function timeStart(environment: Readonly<Record<string, string>>): Promise<number> {
  const startedAt = performance.now();
  const env = { ...process.env, PORT: '0', DATABASE_URL: '', REDIS_URL: '', ...environment };
  const service = spawn('npm', ['start'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  let output = '';
  for await (const chunk of service.stdout) {
    output += chunk;
    if (output.includes('listening on')) break;
  }
  const milliseconds = performance.now() - startedAt;
  service.kill('SIGTERM');
  if (service.exitCode === null) await once(service, 'exit');
  if (!output.includes('listening on')) throw new Error(`The service printed only:\n${output}`);
  return milliseconds;
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { makeFolder } from '../test/folder.js';
import { printTable } from './table.js';

const STARTS = 4;

/** From `npm start` to the line that says the service is ready, on the embedded default: the first time, and later. */
export async function benchStart(): Promise<void> {
  const dataDir = await makeFolder();
  const rows: [string, number][] = [];
  for (let start = 1; start <= STARTS; start += 1) {
    rows.push([start === 1 ? 'first start' : `start ${start}`, await timeStart(dataDir)]);
  }
  await rm(dataDir, { recursive: true, force: true });
  printTable(['npm start', 'ms until ready'], rows);
}

async function timeStart(dataDir: string): Promise<number> {
  const startedAt = performance.now();
  const environment = { ...process.env, DATA_DIR: dataDir, PORT: '0', DATABASE_URL: '', REDIS_URL: '' };
  const service = spawn('npm', ['start'], { env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  for await (const chunk of service.stdout) {
    output += chunk;
    if (output.includes('A line to paste')) break;
  }
  const milliseconds = Math.round(performance.now() - startedAt);
  service.kill('SIGTERM');
  if (service.exitCode === null) await once(service, 'exit');
  return milliseconds;
}

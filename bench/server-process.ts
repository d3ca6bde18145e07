import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePort, isOnPath } from '@animal-store/limits/testing';
import { until } from '@animal-store/platform/testing';
import { readCpuTime, readPeakMemory } from './cpu-time.js';

/** The servers run on one core; the load, PostgreSQL and Redis share the other. */
const SERVER_CORE = 0;
const OTHER_CORE = 1;
const START_TIMEOUT_MS = 30_000;

export interface ServerProcess {
  readonly port: number;
  /** CPU time of all its threads since the start, in microseconds */
  cpuTime(): number;
  /** The most memory that was resident since the start, in MB */
  peakMemory(): number;
  close(): Promise<void>;
}

export const canPin = process.platform === 'linux' && isOnPath('taskset');

/** Moves this process, and everything it starts from now on, off the core of the servers. */
export function leaveServerCore(): void {
  if (canPin) execFileSync('taskset', ['-acp', String(OTHER_CORE), String(process.pid)], { stdio: 'ignore' });
}

/** Runs node with these arguments in a folder. Resolves when the server responds. */
export async function startProcess(
  args: readonly string[],
  cwd: string,
  environment: Readonly<Record<string, string>>,
): Promise<ServerProcess> {
  const port = await freePort();
  const pin = canPin ? ['taskset', '-c', String(SERVER_CORE)] : [];
  const [program = '', ...programArgs] = [...pin, process.execPath, ...args];
  const child = spawn(program, programArgs, {
    cwd,
    env: { PATH: process.env.PATH, NODE_ENV: 'production', PORT: String(port), ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await untilResponding(port, child);
  return {
    port,
    cpuTime: () => readCpuTime(child.pid),
    peakMemory: () => readPeakMemory(child.pid),
    async close() {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

async function untilResponding(port: number, child: ChildProcess): Promise<void> {
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${child.spawnargs.join(' ')} ended with ${child.exitCode}`);
    return fetch(`http://127.0.0.1:${port}/health/live`).then(
      (response) => response.text(),
      () => undefined,
    );
  }, START_TIMEOUT_MS).catch((error) => {
    child.kill();
    throw error;
  });
}

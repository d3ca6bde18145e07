import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../test/support/free-port.js';
import { isOnPath } from '../test/support/programs.js';
import { readCpuTime, readPeakMemory } from './cpu-time.js';

/** The servers run on one core; the load, PostgreSQL and Redis share the other. */
const SERVER_CORE = 0;
const OTHER_CORE = 1;
const START_TIMEOUT_MS = 30_000;
const START_POLL_MS = 20;

export interface ServerCommand {
  readonly name: string;
  /** Arguments of node */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
}

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

/** Resolves when the server responds. */
export async function startProcess(command: ServerCommand): Promise<ServerProcess> {
  const { name, args, cwd, environment } = command;
  const port = await freePort();
  const pin = canPin ? ['taskset', '-c', String(SERVER_CORE)] : [];
  const [program = '', ...programArgs] = [...pin, process.execPath, ...args];
  const child = spawn(program, programArgs, {
    cwd,
    env: { PATH: process.env.PATH, NODE_ENV: 'production', PORT: String(port), ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await waitUntilResponding(port, child, name);
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

async function waitUntilResponding(port: number, child: ChildProcess, name: string): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline && child.exitCode === null) {
    if (await responds(port)) return;
    await delay(START_POLL_MS);
  }
  child.kill();
  throw new Error(`The server ${name} does not respond`);
}

/** A connection is not enough: the service listens for a moment when it checks its addresses, before it is ready. */
async function responds(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/health/live`);
    await response.arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

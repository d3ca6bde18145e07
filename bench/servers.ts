import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** The servers have a core of their own; the load, PostgreSQL and Redis share the other. */
const SERVER_CORE = 0;
const OTHER_CORE = 1;
/** Linux counts a process's time in hundredths of a second. */
const TICK_MICROSECONDS = 10_000;
const START_TIMEOUT_MS = 30_000;

export interface ServerPlan {
  readonly name: string;
  /** Arguments of node */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** false: it may use every core. Default true */
  readonly isPinned?: boolean;
}

/** A server that is measured, in a process of its own on its own core. */
export interface BenchServer {
  readonly name: string;
  readonly port: number;
  /** Of all of its threads since it began, in microseconds */
  cpu(): number;
  /** The most memory that was resident so far, in MB */
  peakMemory(): number;
  close(): Promise<void>;
}

export const canPin = process.platform === 'linux' && isOnPath('taskset');

/** Keeps this process, and all that it starts from now on, off the core of the servers. */
export function leaveServerCore(): void {
  if (canPin) execFileSync('taskset', ['-acp', String(OTHER_CORE), String(process.pid)], { stdio: 'ignore' });
}

export async function startServer({
  name,
  command,
  environment,
  isPinned = canPin,
}: ServerPlan): Promise<BenchServer> {
  const port = await findFreePort();
  const pin = isPinned ? ['taskset', '-c', String(SERVER_CORE)] : [];
  const [program = '', ...values] = [...pin, process.execPath, ...command];
  const child = spawn(program, values, {
    env: { PATH: process.env.PATH, NODE_ENV: 'production', PORT: String(port), ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await waitUntilListening(port, child, name);
  return {
    name,
    port,
    cpu: () => readCpu(child.pid),
    peakMemory: () => Number(/VmHWM:\s*(\d+)/.exec(readProcess(child.pid, 'status'))?.[1]) / 1024,
    async close() {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

function readCpu(pid: number | undefined): number {
  const [user, system] = readProcess(pid, 'stat').split(') ')[1]?.split(' ').slice(11, 13) ?? [];
  return (Number(user) + Number(system)) * TICK_MICROSECONDS;
}

function readProcess(pid: number | undefined, file: string): string {
  return process.platform === 'linux' ? readFileSync(`/proc/${pid}/${file}`, 'utf8') : '';
}

async function waitUntilListening(port: number, child: ChildProcess, name: string): Promise<void> {
  const lastMs = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < lastMs && child.exitCode === null) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await delay(20);
  }
  throw new Error(`${name} does not listen`);
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

function isOnPath(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

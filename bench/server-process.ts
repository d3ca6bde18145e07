import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** The servers run on one core; the load, PostgreSQL and Redis share the other. */
const SERVER_CORE = 0;
const OTHER_CORE = 1;
/** Linux reports the CPU time of a process in hundredths of a second. */
const CPU_TICK_US = 10_000;
const START_TIMEOUT_MS = 30_000;
const START_POLL_MS = 20;

export interface ServerCommand {
  readonly name: string;
  /** Arguments of node */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Whether it stays on the core of the servers. Default: where the machine allows it */
  readonly isPinned?: boolean;
}

export interface ServerProcess {
  readonly port: number;
  /** CPU time of all its threads since the start, in microseconds */
  cpuMicroseconds(): number;
  /** The most memory that was resident since the start, in MB */
  peakMemory(): number;
  close(): Promise<void>;
}

export const canPin = process.platform === 'linux' && isOnPath('taskset');

/** Moves this process, and everything it starts from now on, off the core of the servers. */
export function leaveServerCore(): void {
  if (canPin) execFileSync('taskset', ['-acp', String(OTHER_CORE), String(process.pid)], { stdio: 'ignore' });
}

/** Resolves when the server accepts connections. */
export async function startProcess(command: ServerCommand): Promise<ServerProcess> {
  const { name, args, cwd, environment, isPinned = canPin } = command;
  const port = await findFreePort();
  const pin = isPinned ? ['taskset', '-c', String(SERVER_CORE)] : [];
  const [program = '', ...programArgs] = [...pin, process.execPath, ...args];
  const child = spawn(program, programArgs, {
    cwd,
    env: { PATH: process.env.PATH, NODE_ENV: 'production', PORT: String(port), ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await waitUntilListening(port, child, name);
  return {
    port,
    cpuMicroseconds: () => readCpu(child.pid),
    peakMemory: () => Number(/VmHWM:\s*(\d+)/.exec(readProc(child.pid, 'status'))?.[1]) / 1024,
    async close() {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

function readCpu(pid: number | undefined): number {
  const [user, system] = readProc(pid, 'stat').split(') ')[1]?.split(' ').slice(11, 13) ?? [];
  return (Number(user) + Number(system)) * CPU_TICK_US;
}

function readProc(pid: number | undefined, file: string): string {
  return process.platform === 'linux' ? readFileSync(`/proc/${pid}/${file}`, 'utf8') : '';
}

async function waitUntilListening(port: number, child: ChildProcess, name: string): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline && child.exitCode === null) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await delay(START_POLL_MS);
  }
  child.kill();
  throw new Error(`The server ${name} does not listen`);
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

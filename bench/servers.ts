import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Backend } from './backend.js';
import type { Keys } from './cases.js';
import type { CpuTimes } from './cpu-time.js';
import { type ServerCommand, type ServerProcess, startProcess } from './server-process.js';

/** Servers of this folder. */
export const EXAMPLE_NAMES = ['baseline', 'hono', 'idiomatic', 'raw'] as const;

export type ExampleName = (typeof EXAMPLE_NAMES)[number];

/** A running server with the keys of its database. */
export interface BenchServer extends Pick<ServerProcess, 'port' | 'peakMemory' | 'close'> {
  readonly name: string;
  readonly keys: Keys;
  readonly isRestOnly: boolean;
  /** The only id that it can be asked for. Undefined: any */
  readonly onlyId: number | undefined;
  cpuTimes(): CpuTimes;
}

export interface ServiceOptions {
  readonly isProfiled?: boolean;
  /** Processes, on all cores. Left out: one, on the core of the servers */
  readonly workers?: number;
}

export interface ExampleOptions {
  /** Of compiled servers */
  readonly folder: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly onlyId?: number;
}

/** A server of this folder, compiled: it needs no more than its users' own would. */
export function startExample(
  name: ExampleName,
  backend: Backend,
  { folder, environment = {}, onlyId }: ExampleOptions,
): Promise<BenchServer> {
  const command = {
    name,
    args: [`bench/${name}.js`],
    cwd: folder,
    environment: { ...environmentOf(backend), ...environment },
  };
  return start(command, backend, { isRestOnly: name === 'baseline' || name === 'hono', onlyId });
}

/** The built service of the backend's checkout, started as `npm start` does. */
export function startService(
  name: string,
  backend: Backend,
  { isProfiled = false, workers }: ServiceOptions = {},
): Promise<BenchServer> {
  const args = [...(isProfiled ? ['--cpu-prof'] : []), ...readStartArguments(backend.checkout)];
  const environment = { ...environmentOf(backend), APP_ENV: 'staging' };
  const command = { name, args, cwd: backend.checkout, environment };
  if (workers === undefined) return start(command, backend);
  return start(
    { ...command, environment: { ...environment, WORKERS: `${workers}` }, isPinned: false },
    backend,
  );
}

/** What `npm start` passes to node: its flags and the program. */
export function readStartArguments(checkout: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'));
  const args = /^(?:exec )?node (.+)$/.exec(scripts.start)?.[1];
  if (args === undefined) throw new Error(`The start script of ${checkout} does not run node`);
  return args.split(' ');
}

async function start(
  command: ServerCommand,
  { keys, cpuTimes }: Backend,
  { isRestOnly = false, onlyId }: { isRestOnly?: boolean; onlyId?: number | undefined } = {},
): Promise<BenchServer> {
  const started = await startProcess(command);
  return {
    ...started,
    name: command.name,
    keys,
    isRestOnly,
    onlyId,
    cpuTimes: () => ({ server: started.cpuTime(), ...cpuTimes() }),
  };
}

function environmentOf({ databaseUrl, redisUrl }: Backend): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    ...(redisUrl === undefined ? {} : { REDIS_URL: redisUrl }),
    ANONYMOUS_PER_MINUTE: '1000000000',
  };
}

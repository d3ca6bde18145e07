import type { Backend } from './backend.js';
import type { Keys } from './cases.js';
import { type ServerCommand, type ServerProcess, startProcess } from './server-process.js';

export type ServerName = 'baseline' | 'idiomatic' | 'service' | 'before';

/** A running server with the keys of its database. */
export interface BenchServer extends ServerProcess {
  readonly name: string;
  readonly keys: Keys;
}

export interface ServiceOptions {
  readonly isProfiled?: boolean;
  /** Processes, on all cores. Left out: one, on the core of the servers */
  readonly workers?: number;
}

/**
 * The hand-written service (bench/baseline.ts), or the one built as the packages' documentation shows
 * (bench/idiomatic.ts).
 */
export function startExample(name: 'baseline' | 'idiomatic', backend: Backend): Promise<BenchServer> {
  const environment = environmentOf(backend);
  const args = ['--import', 'tsx', `bench/${name}.ts`];
  return start({ name, args, cwd: backend.checkout, environment }, backend);
}

/** The built service of the backend's checkout, started as `npm start` does. */
export function startService(
  name: string,
  backend: Backend,
  { isProfiled = false, workers }: ServiceOptions = {},
): Promise<BenchServer> {
  const args = [...(isProfiled ? ['--cpu-prof'] : []), '--max-old-space-size=1536', 'dist/main.js'];
  const environment = { ...environmentOf(backend), APP_ENV: 'staging' };
  const command = { name, args, cwd: backend.checkout, environment };
  if (workers === undefined) return start(command, backend);
  return start(
    { ...command, environment: { ...environment, WORKERS: `${workers}` }, isPinned: false },
    backend,
  );
}

async function start(command: ServerCommand, { keys }: Backend): Promise<BenchServer> {
  return { ...(await startProcess(command)), name: command.name, keys };
}

function environmentOf({ databaseUrl, redisUrl }: Backend): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    ...(redisUrl === undefined ? {} : { REDIS_URL: redisUrl }),
    ANONYMOUS_PER_MINUTE: '1000000000',
  };
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Backend } from './backend.js';
import type { Keys } from './case.js';
import type { CpuTimes } from './cpu-time.js';
import { type ServerProcess, startProcess } from './server-process.js';

const EXAMPLE_NAMES = ['baseline', 'hono'] as const;
/** Of other checkouts, in the order of --compare */
export const COMPARED_NAMES = ['before', 'older'] as const;
export const SERVER_NAMES = [...EXAMPLE_NAMES, 'service', ...COMPARED_NAMES] as const;

export type ServerName = (typeof SERVER_NAMES)[number];

/** A running server with the keys of its database. */
export interface BenchServer extends Pick<ServerProcess, 'port' | 'peakMemory' | 'close'> {
  readonly name: ServerName;
  readonly keys: Keys;
  readonly databaseUrl: string;
  cpuTimes(): CpuTimes;
}

export interface StartOptions {
  readonly current: Backend;
  /** Of the checkouts to compare with, by the server's name */
  readonly compared?: ReadonlyMap<string, Backend>;
  /** Of the compiled examples */
  readonly folder?: string;
  readonly isProfiled?: boolean;
  /** A module that the service loads before its own */
  readonly importedModule?: string | undefined;
  /** Whether to use up the limits of the exhausted keys first */
  readonly isExhausted?: boolean;
  /** Further variables of the environment */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Whether it is a server of this folder, which has REST only. */
export function isExample(name: ServerName): boolean {
  return EXAMPLE_NAMES.some((example) => example === name);
}

/**
 * Starts a server of this folder, compiled, because it needs no more than its users' own would; or the built service of
 * a checkout, as `npm start` does.
 */
export async function startServer(name: ServerName, options: StartOptions): Promise<BenchServer> {
  const { folder = '', current, compared, isProfiled, importedModule, isExhausted } = options;
  const backend = COMPARED_NAMES.some((each) => each === name) ? compared?.get(name) : current;
  if (backend === undefined) throw new Error(`There is no server ${name}: --compare=FOLDER adds it`);
  const { databaseUrl, redisUrl, checkout, keys } = backend;
  const environment = {
    DATABASE_URL: databaseUrl,
    ...(redisUrl === undefined ? {} : { REDIS_URL: redisUrl }),
    ANONYMOUS_PER_MINUTE: '1000000000',
    APP_ENV: 'staging',
    ...options.environment,
  };
  const profile = isProfiled && !isExample(name) ? ['--cpu-prof'] : [];
  const imports = importedModule !== undefined && name === 'service' ? ['--import', importedModule] : [];
  const server = await (isExample(name)
    ? startProcess([`bench/${name}.js`], folder, environment)
    : startProcess([...profile, ...imports, ...readStartArguments(checkout)], checkout, environment));
  if (isExhausted) {
    await exhaust(name, server.port, keys.exhausted).catch(async (error) => {
      await server.close();
      throw error;
    });
  }
  return {
    ...server,
    name,
    keys,
    databaseUrl,
    cpuTimes: () => ({ server: server.cpuTime(), ...backend.cpuTimes() }),
  };
}

/** What `npm start` passes to node: its flags and the program. */
function readStartArguments(checkout: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'));
  const args = /^(?:exec )?node (.+)$/.exec(scripts.start)?.[1];
  if (args === undefined) throw new Error(`The start script of ${checkout} does not run node`);
  return args.split(' ');
}

const CONCURRENCY = 32;
const MAX_ATTEMPTS = 10;

/** Uses up the limits of keys with one request. A server may count its first ones in memory instead of Redis. */
async function exhaust(name: string, port: number, keys: readonly string[]): Promise<void> {
  const isUsedUp = async (key: string) => {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`http://127.0.0.1:${port}/v1/pets`, { headers });
    await response.arrayBuffer();
    return response.status === 429;
  };
  const waiting = keys.values();
  const work = async () => {
    for (const key of waiting) {
      let attempts = 1;
      while (!(await isUsedUp(key))) {
        if (attempts === MAX_ATTEMPTS) throw new Error(`${name} does not enforce a limit of one request`);
        attempts += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
}

import { join } from 'node:path';
import type { Backend } from './backend.js';
import { RECORDED_ID, recordResponses } from './recorded-responses.js';
import { type BenchServer, EXAMPLE_NAMES, type ExampleName, startExample, startService } from './servers.js';

export const SERVER_NAMES = [...EXAMPLE_NAMES, 'service', 'before'] as const;

export type ServerName = (typeof SERVER_NAMES)[number];

export interface StartOptions {
  /** Of the compiled examples */
  readonly folder: string;
  readonly current: Backend;
  /** Of the checkout to compare with */
  readonly before: Backend | undefined;
  /** What runs already */
  readonly started: readonly BenchServer[];
  readonly isProfiled: boolean;
}

export function isExample(name: ServerName): name is ExampleName {
  return name !== 'service' && name !== 'before';
}

/** Starts a server, and uses up the limit of its exhausted key. */
export async function startServer(name: ServerName, options: StartOptions): Promise<BenchServer> {
  if (name === 'raw') return startRaw(options);
  const server = await startLimited(name, options);
  await exhaust(server);
  return server;
}

function startLimited(
  name: Exclude<ServerName, 'raw'>,
  { folder, current, before, isProfiled }: StartOptions,
): Promise<BenchServer> {
  if (isExample(name)) return startExample(name, current, { folder });
  if (name === 'service') return startService(name, current, { isProfiled });
  if (before === undefined) throw new Error(`There is no server ${name}: --compare=FOLDER adds "before"`);
  return startService(name, before);
}

/** Starts the server that repeats what the service answers. */
async function startRaw({ folder, current, started }: StartOptions): Promise<BenchServer> {
  const service = started.find(({ name }) => name === 'service');
  if (service === undefined)
    throw new Error('raw repeats the responses of the service: --servers=service,raw');
  const file = join(folder, 'responses.json');
  await recordResponses(service, file);
  return startExample('raw', current, { folder, environment: { RESPONSES: file }, onlyId: RECORDED_ID });
}

/** Uses up the limit of one request. A server on a busy machine may count its first ones in memory instead of Redis. */
async function exhaust({ name, port, keys }: BenchServer): Promise<void> {
  const headers = { authorization: `Bearer ${keys.exhausted}` };
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const response = await fetch(`http://127.0.0.1:${port}/v1/pets`, { headers });
    await response.arrayBuffer();
    if (response.status === 429) return;
  }
  throw new Error(`The server ${name} does not enforce a limit of one request`);
}

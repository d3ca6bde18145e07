import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { type Logger, pino } from 'pino';
import { afterAll, beforeAll, inject } from 'vitest';
import type { z } from 'zod';
import {
  createItemStore,
  type Database,
  type Item,
  type ItemStore,
  newItemSchema,
  definition as ownDefinition,
  resources as ownResources,
} from '#operations-under-test';
import { openDatabase } from '../../src/connections/client.js';
import type { Definition } from '../../src/definition/definition.js';
import { createKeyStore, type KeyStore } from '../../src/keys/store.js';
import type { Resource } from '../../src/operations/resource.js';
import { readConfig } from '../../src/process/config.js';
import { createService, type Overrides, type ServiceConfig } from '../../src/service.js';
import type { IdempotencyKey } from '../../src/tables/idempotency.js';
import { execute } from './execute.js';
import { asService } from './service-role.js';
import { until } from './until.js';

/** Creates a database as a copy of the migrated template and returns the URL of its owner. */
export async function createTestDatabase(template = inject('template')): Promise<string> {
  const url = new URL(inject('postgresUrl'));
  const name = `${inject('databasePrefix')}_${randomBytes(6).toString('hex')}`;
  await execute(url.href, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  url.pathname = `/${name}`;
  return url.href;
}

/** Its create takes what a client may send, so that a test spells out only what it needs. */
interface TestItems extends Omit<ItemStore, 'create'> {
  create(input: z.input<typeof newItemSchema>, key?: IdempotencyKey): Promise<Item>;
}

export interface TestService {
  /** http://127.0.0.1:PORT */
  readonly url: string;
  readonly port: number;
  /** A valid key with limits no test reaches */
  readonly key: string;
  readonly keys: KeyStore;
  readonly items: TestItems;
  /** As the owner of the tables */
  readonly database: Database;
  /** The service's own, as the role with the documented grants */
  readonly serviceDatabase: Database;
  /** Of the owner */
  readonly databaseUrl: string;
  close(): Promise<void>;
}

/** PUBLIC_URL of the services under test, unless a test overrides it. */
export const PUBLIC_URL = 'https://service.example/store';
export const STAGING_URL = 'https://staging.service.example/store';

/** Values of the configuration, parts that replace the service's own, and what it is built from */
export interface TestServiceOptions extends Partial<ServiceConfig>, Overrides {
  readonly definition?: Definition;
  readonly log?: Logger;
  readonly databaseUrl?: string;
  readonly port?: number;
  readonly now?: () => number;
  readonly resources?: readonly Resource[];
}

/** Starts a real service on a free port with a database of its own. Options replace its parts. */
export async function startService(options: TestServiceOptions = {}): Promise<TestService> {
  const {
    databaseUrl = await createTestDatabase(),
    port: wantedPort = 0,
    log = pino({ level: 'silent' }),
    now,
    resources = ownResources,
    definition = ownDefinition,
    limiter,
    usage,
    countKeys,
    checkReadiness,
    connections,
    // On a busy machine the event loop is late, which is not what most tests are about.
    overload = { delayMs: 60_000 },
    ...configured
  } = options;
  // A changed definition has the same Prisma client.
  const { loadPrisma } = ownDefinition;
  const ofStore = { ...definition, loadPrisma };
  const database = openDatabase(asService(databaseUrl), () => {}, ofStore);
  const owner = openDatabase(databaseUrl, () => {}, ofStore, { connectTimeoutMs: 60_000 });
  // On a busy machine, opening a connection takes longer than a request may wait for it.
  await untilConnected(database);
  const config = {
    ...readConfig(definition.identity, {}),
    anonymousPerMinute: 1_000_000,
    corsOrigins: [],
    publicUrl: PUBLIC_URL,
    stagingUrl: STAGING_URL,
    ...configured,
  };
  const { app, keys, close } = await createService({
    definition,
    config,
    database,
    log,
    ...(now === undefined ? {} : { now }),
    resources,
    overrides: { limiter, usage, countKeys, checkReadiness, connections, overload },
  });
  await app.listen({ port: wantedPort, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  const items = createItemStore(database);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    // The service itself is busy with its first queries.
    key: await issueKey(createKeyStore(owner, config.keyPrefix, definition.scopes)),
    keys,
    items: {
      ...items,
      create: async (input, key) => (await items.create(newItemSchema.parse(input), key)).output,
    },
    database: owner,
    serviceDatabase: database,
    databaseUrl,
    async close() {
      await app.close();
      await close();
      await database.close();
      await owner.close();
    },
  };
}

/** A service for all tests of a file, which calls this at its top: it runs by the file's own first hook. */
export function useService(options: TestServiceOptions = {}): { service: TestService; call: Caller } {
  const service = {} as TestService;
  beforeAll(async () => void Object.assign(service, await startService(options)));
  afterAll(() => service.close());
  return { service, call: (path, init) => createCaller(service)(path, init) };
}

/** Waits for connections as long as opening them takes too long. Any other failure is the test's own. */
export async function untilConnected(database: Pick<Database, 'connect'>): Promise<void> {
  const connect = () =>
    database.connect().then(
      () => true,
      ({ message }: Error) => !/timeout/.test(message) || undefined,
    );
  await until(connect, 60_000);
}

/** Issues a key with limits no test reaches by accident. */
async function issueKey(keys: KeyStore): Promise<string> {
  const limits = { plan: 'enterprise', perMinute: 1_000_000, perDay: 1_000_000 } as const;
  const { key } = await keys.create({ name: 'test', expiresAt: null, ...limits });
  return key;
}

export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed JSON body, or undefined when there is none */
  // biome-ignore lint/suspicious/noExplicitAny: tests read bodies of every shape
  readonly body: any;
}

export type Caller = (path: string, init?: RequestInit & { key?: string | null }) => Promise<TestResponse>;

/**
 * Repeats a call while the answer is that it may be repeated, as clients do: on a busy machine a create may take longer than
 * a request, or than another with its key, waits for it.
 */
export function untilServed(send: () => Promise<TestResponse>): Promise<TestResponse> {
  return until(async () => {
    const response = await send();
    const mayBeRepeated = response.status === 503 || response.body?.code === 'idempotency_key_in_use';
    return mayBeRepeated ? undefined : response;
  }, 60_000);
}

/** Repeats each of its calls so, for tests that are about something else than a busy machine. */
export const patient =
  (call: Caller): Caller =>
  (path, init) =>
    untilServed(() => call(path, init));

/** Returns a function that calls the service with its key; `key: null` sends none. */
export function createCaller({ url, key: ownKey }: Pick<TestService, 'url' | 'key'>): Caller {
  return async (path, { key = ownKey, headers, ...init } = {}) => {
    const sent = new Headers(headers);
    if (key !== null && !sent.has('authorization')) sent.set('authorization', `Bearer ${key}`);
    const response = await fetch(url + path, { ...init, headers: sent });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? undefined : parseBody(text, response.status),
    };
  };
}

/** A response that is no JSON, such as one of a proxy, is an error that shows it. */
function parseBody(text: string, status: number) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`No JSON, with the status ${status}: ${text}`, { cause: error });
  }
}

/** Options of `fetch` that post JSON; a string is sent as it is. */
export function post(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  };
}

/** Returns the path of a tRPC query; a string is sent as it is. */
export function rpcPath(procedure: string, input?: unknown): string {
  const json = typeof input === 'string' ? input : JSON.stringify(input);
  return `/trpc/${procedure}${json === undefined ? '' : `?input=${encodeURIComponent(json)}`}`;
}

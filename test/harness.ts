import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { pino } from 'pino';
import { inject } from 'vitest';
import { type AppOptions, buildApp } from '../src/app.js';
import { type Database, openDatabase } from '../src/database/client.js';
import { answerWithin, LOOKUP_BOUND_MS, OPERATION_BOUND_MS } from '../src/database/deadline.js';
import { checkMigrations } from '../src/database/source.js';
import { createAuthenticator } from '../src/keys/authenticator.js';
import { createKeyStore, type KeyStore } from '../src/keys/store.js';
import { createLimiter } from '../src/limits/limiter.js';
import { buildDocument } from '../src/openapi.js';
import { createOrderStore } from '../src/orders/store.js';
import { createPetStore, type PetStore } from '../src/pets/store.js';
import { TEMPLATE } from './global-setup.js';

/** A new database, a copy of the migrated template; returns its URL. */
export async function createTestDatabase(template = TEMPLATE): Promise<string> {
  const url = new URL(inject('postgresUrl'));
  const name = `test_${randomBytes(6).toString('hex')}`;
  const client = new pg.Client(url.href);
  await client.connect();
  await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
  await client.end();
  url.pathname = `/${name}`;
  return url.href;
}

export interface Service {
  /** http://127.0.0.1:PORT */
  readonly url: string;
  readonly port: number;
  /** A valid key */
  readonly key: string;
  readonly keys: KeyStore;
  readonly pets: PetStore;
  readonly database: Database;
  close(): Promise<void>;
}

/** The address that the services of the tests believe to be known by. */
export const PUBLIC_URL = 'https://pets.example/store';
const STAGING_URL = 'https://staging.pets.example/store';

/** A real service on a free port over a database of its own. What is given replaces what it would be built of. */
export async function startService(
  options: Partial<AppOptions> & { databaseUrl?: string; port?: number; now?: () => number } = {},
): Promise<Service> {
  const database = openDatabase(options.databaseUrl ?? (await createTestDatabase()), () => {});
  const keys = createKeyStore(database, 'as_test_');
  const pets = createPetStore(database);
  const log = pino({ level: 'silent' });
  const limiter = createLimiter({ redisUrls: [], log });
  const app = await buildApp({
    log,
    limiter,
    anonymousPerMinute: 1_000_000,
    corsOrigins: [],
    service: {
      pets: answerWithin(OPERATION_BOUND_MS, pets),
      orders: answerWithin(OPERATION_BOUND_MS, createOrderStore(database)),
      now: options.now ?? Date.now,
    },
    authenticator: answerWithin(
      LOOKUP_BOUND_MS,
      createAuthenticator({ store: keys, prefix: 'as_test_', now: options.now ?? Date.now }),
    ),
    checkDatabase: () => checkMigrations(database.pool),
    pool: database.use,
    publicUrl: () => PUBLIC_URL,
    document: () => buildDocument({ publicUrl: PUBLIC_URL, stagingUrl: STAGING_URL }),
    trustProxy: [],
    ...options,
  });
  await app.listen({ port: options.port ?? 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    key: await issueKey(keys),
    keys,
    pets,
    database,
    async close() {
      await app.close();
      await limiter.close();
      await database.close();
    },
  };
}

/** A key whose limits no test reaches by chance. */
async function issueKey(keys: KeyStore): Promise<string> {
  const limits = { plan: 'enterprise', perMinute: 1_000_000, perDay: 1_000_000 } as const;
  const { key } = await keys.create({ name: 'test', expiresAt: null, ...limits });
  return key;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed JSON body, or undefined when there is none */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  readonly body: any;
}

export type Caller = (path: string, init?: RequestInit & { key?: string | null }) => Promise<Answer>;

/** Calls the service with its key; `key: null` sends none. */
export function callerOf({ url, key: ownKey }: Pick<Service, 'url' | 'key'>): Caller {
  return async (path, { key = ownKey, headers, ...init } = {}) => {
    const sent = new Headers(headers);
    if (key !== null && !sent.has('authorization')) sent.set('authorization', `Bearer ${key}`);
    const response = await fetch(url + path, { ...init, headers: sent });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? undefined : JSON.parse(text),
    };
  };
}

/** What `fetch` needs to post JSON; a string is sent as it is. */
export function post(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  };
}

/** The path of a tRPC query. */
export function rpcPath(procedure: string, input?: unknown): string {
  const json = typeof input === 'string' ? input : JSON.stringify(input);
  return `/trpc/${procedure}${json === undefined ? '' : `?input=${encodeURIComponent(json)}`}`;
}

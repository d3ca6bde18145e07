import type { AddressInfo } from 'node:net';
import { createLimiter } from '@animal-store/limits';
import { until } from '@animal-store/limits/testing';
import { type Logger, pino } from 'pino';
import { type Database, openDatabase } from '../connections/client.js';
import { MCP_PREFIX, TRPC_PREFIX } from '../contract/protocol.js';
import type { AnyPrisma, Definition, PrismaModule } from '../definition/definition.js';
import { createKeyStore, type KeyStore, type NewKey } from '../keys/store.js';
import type { Resource } from '../operations/resource.js';
import { readConfig, toLocalUrl } from '../process/config.js';
import { createService, type Overrides, type ServiceConfig } from '../service.js';
import { type Caller, createCaller } from './callers.js';
import { toolCall } from './mcp.js';
import { createProtocols, type Protocols } from './protocols.js';
import { asServiceRole, createTestDatabase, useServers } from './servers.js';

const HOST = '127.0.0.1';
/** Limits that no test reaches by accident */
const UNREACHED = 1_000_000;
/** A busy machine may take this long to open a connection. */
const CONNECT_TIMEOUT_MS = 60_000;

/** What is served, values of the configuration, and parts that replace the service's own */
export interface StoreOptions<Prisma extends AnyPrisma = AnyPrisma>
  extends Partial<ServiceConfig>,
    Overrides {
  readonly definition: Definition & { readonly loadPrisma: () => Promise<PrismaModule<Prisma>> };
  readonly resources: readonly Resource[];
  /** Default: a new database with all migrations. See createTestDatabase */
  readonly databaseUrl?: string | undefined;
  /** Default: a free one */
  readonly port?: number | undefined;
  /** Default: warnings and errors go to standard error. Each response with a 5xx is one, with its reason. */
  readonly log?: Logger | undefined;
  /** A clock in Unix milliseconds, in place of one that `advance` moves. PostgreSQL has its own. */
  readonly now?: (() => number) | undefined;
}

/** A store as its tests call it. */
export interface StoreUnderTest<Prisma extends AnyPrisma = AnyPrisma> {
  /** http://127.0.0.1:PORT */
  readonly url: string;
  readonly port: number;
  /** A key that may do everything, with limits that no test reaches */
  readonly key: string;
  /** Issues a key, of `developmentPlan` unless it names another one, and resolves with it. */
  issueKey(key?: Partial<NewKey>): Promise<string>;
  /** Requests to any path, with `key` unless they bring one */
  readonly call: Caller;
  /** Calls of operations by their names, over each protocol */
  readonly protocols: Protocols;
  /** Calls a tool, as an assistant does, and resolves with its result: `structuredContent`, `isError` and so on. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read outputs of every shape
  callTool(name: string, args?: object): Promise<any>;
  /** For a link of tRPC's client, such as `httpBatchLink(link)` */
  readonly link: { readonly url: string; readonly headers: Readonly<Record<string, string>> };
  /** Moves the clock of the service, on which bans and limits in memory depend: a minute later every limit per minute is whole again. */
  advance(milliseconds: number): void;
  readonly keys: KeyStore;
  /** As the owner of the tables */
  readonly database: Database<Prisma>;
  /** The service's own, as a role with the documented grants, which a forgotten grant therefore fails */
  readonly serviceDatabase: Database<Prisma>;
  /** Of the owner */
  readonly databaseUrl: string;
  close(): Promise<void>;
}

/**
 * Serves a store in this process on a free port, with a new database on the PostgreSQL that `prepareServers` has prepared, or
 * else on an embedded one of its own. It counts in memory unless `redisUrls` names a Redis.
 */
export async function startStore<Prisma extends AnyPrisma>(
  options: StoreOptions<Prisma>,
): Promise<StoreUnderTest<Prisma>> {
  const releaseServers = await useServers(options.definition);
  try {
    const store = await serve(options);
    return { ...store, close: () => store.close().finally(releaseServers) };
  } catch (error) {
    await releaseServers();
    throw error;
  }
}

async function serve<Prisma extends AnyPrisma>({
  definition,
  resources,
  databaseUrl: givenUrl,
  port: wantedPort = 0,
  log = pino({ level: 'warn' }, pino.destination({ dest: 2, sync: true })),
  now: givenNow,
  limiter: givenLimiter,
  usage,
  countKeys,
  checkReadiness,
  connections,
  // On a busy machine the event loop is late, which is not what most tests are about.
  overload = { delayMs: 60_000 },
  ...configured
}: StoreOptions<Prisma>): Promise<StoreUnderTest<Prisma>> {
  const databaseUrl = givenUrl ?? (await createTestDatabase(definition));
  const database = openDatabase(asServiceRole(definition, databaseUrl), () => {}, definition);
  const owner = openDatabase(databaseUrl, () => {}, definition, { connectTimeoutMs: CONNECT_TIMEOUT_MS });
  const config = { ...readConfig(definition.identity, {}), anonymousPerMinute: UNREACHED, ...configured };
  let advanced = 0;
  const now = givenNow ?? (() => Date.now() + advanced);
  const clock = () => performance.now() + advanced;
  // Redis has a clock of its own, which no test moves.
  const inMemory = { windows: definition.windows, redisUrls: [], log, now, clock };
  const limiter = givenLimiter ?? (config.redisUrls.length > 0 ? undefined : await createLimiter(inMemory));
  // On a busy machine, opening a connection takes longer than a request may wait for it.
  await untilConnected(database);
  const service = await createService({
    definition,
    config,
    database,
    log,
    now,
    resources,
    overrides: { limiter, usage, countKeys, checkReadiness, connections, overload },
  });
  await service.app.listen({ port: wantedPort, host: HOST });
  const { port } = service.app.server.address() as AddressInfo;
  const url = toLocalUrl(HOST, port);
  // The service itself is busy with its first queries.
  const keys = createKeyStore(owner, config.keyPrefix, definition.scopes);
  const { key } = await keys.create({ name: 'test', expiresAt: null, ...findWidestPlan(definition) });
  const call = createCaller({ url, key });
  return {
    url,
    port,
    key,
    call,
    keys: service.keys,
    database: owner,
    serviceDatabase: database,
    databaseUrl,
    protocols: createProtocols(resources)(call),
    link: { url: url + TRPC_PREFIX, headers: { authorization: `Bearer ${key}` } },
    async issueKey(wanted = {}) {
      const issued = await keys.create({ name: 'test', plan: definition.developmentPlan, ...wanted });
      return issued.key;
    },
    async callTool(name, args = {}) {
      const { body } = await call(MCP_PREFIX, toolCall(name, args));
      return body.result ?? body;
    },
    advance(milliseconds) {
      advanced += milliseconds;
    },
    async close() {
      await service.app.close();
      await service.close();
      await database.close();
      await owner.close();
    },
  };
}

/** The plan whose keys have limits of their own, if there is one. */
function findWidestPlan({
  plans,
  developmentPlan,
}: Definition): Pick<NewKey, 'plan' | 'perMinute' | 'perDay'> {
  const custom = Object.keys(plans).find((plan) => plans[plan] === undefined);
  return custom === undefined
    ? { plan: developmentPlan }
    : { plan: custom, perMinute: UNREACHED, perDay: UNREACHED };
}

/** Waits for connections as long as opening them takes too long. Any other failure is the test's own. */
async function untilConnected(database: Pick<Database, 'connect'>): Promise<void> {
  const connect = () =>
    database.connect().then(
      () => true,
      ({ message }: Error) => !/timeout/.test(message) || undefined,
    );
  await until(connect, CONNECT_TIMEOUT_MS);
}

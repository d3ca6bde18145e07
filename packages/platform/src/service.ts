import { createLimiter, type Limiter } from '@animal-store/limits';
import type { FastifyBaseLogger } from 'fastify';
import { buildApp } from './app.js';
import { BATCH_CHANNEL } from './connections/batch-channel.js';
import type { Database } from './connections/client.js';
import { withOutages } from './connections/outage.js';
import type { Definition } from './definition/definition.js';
import { createAuthenticator } from './keys/authenticator.js';
import { createBans } from './keys/bans.js';
import { createRevoke } from './keys/revoke.js';
import { createKeyStore } from './keys/store.js';
import type { createDurations } from './monitoring/durations.js';
import { countKeys } from './monitoring/key-counts.js';
import type { MetricsOptions } from './monitoring/metrics.js';
import { measureQueries } from './monitoring/query-durations.js';
import { checkService, createReadiness } from './monitoring/readiness.js';
import { listOperations } from './operations/list-operations.js';
import { createRouter, type Resource } from './operations/resource.js';
import { checkStore } from './operations/resource-check.js';
import type { Config } from './process/config.js';
import { closeSubscribers } from './process/shutdown.js';
import { createContextFactory } from './protocols/context.js';
import type { ServerOptions } from './server.js';
import { deleteExpiredCreates } from './tables/idempotency.js';
import { repeat } from './timing/repeat.js';
import { OPERATION_TIMEOUT_MS, REDIS_TIMEOUT_MS } from './timing/timeouts.js';
import { flushRegularly, UNNAMED_CALL, UsageCounter } from './usage/counter.js';
import { createUsageStore, type UsageStore } from './usage/store.js';

/** How long the start waits for Redis, so that not even the first requests are counted in memory. */
const REDIS_WAIT_MS = 2_000;
/** How often expired idempotency keys and old usage are deleted. */
const CLEANUP_INTERVAL_MS = 60 * 60 * 1000;

export type ServiceConfig = Omit<Config, 'appEnv' | 'databaseUrl' | 'dataDir' | 'logLevel' | 'port'>;

export type Service = Awaited<ReturnType<typeof createService>>;

export interface ServiceOptions {
  readonly definition: Definition;
  readonly config: ServiceConfig;
  readonly database: Database;
  readonly log: FastifyBaseLogger;
  /** Counters of the process, for the metrics */
  readonly counters?: MetricsOptions['counters'];
  /** The clock, in Unix milliseconds. Default `Date.now` */
  readonly now?: () => number;
  readonly resources: readonly Resource[];
  /** For tests: replaces parts that would be built from the configuration */
  readonly overrides?: Overrides;
}

export interface Overrides extends Pick<ServerOptions, 'connections' | 'overload'> {
  readonly limiter?: Limiter | undefined;
  readonly usage?: Pick<UsageCounter, 'count' | 'waiting' | 'dropped' | 'mostlyDenied'> | undefined;
  readonly countKeys?: MetricsOptions['countKeys'] | undefined;
  readonly checkReadiness?: (() => Promise<string | undefined>) | undefined;
}

/** Composes the service, ready but not listening yet: for the process, the tests and the bench alike. */
export async function createService(options: ServiceOptions) {
  const { definition, config, database, log, resources, now = Date.now, overrides = {} } = options;
  const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message);
  const router = createRouter(resources);
  const keys = createKeyStore(database, config.keyPrefix, definition.scopes);
  const bans = createBans({ store: keys, now, log });
  const usages = createUsageStore(database);
  const usage = new UsageCounter({
    store: usages,
    operations: [...Object.keys(router._def.procedures), UNNAMED_CALL],
    now,
    warn: warn('usage could not be stored yet; it is tried again'),
  });
  const endFlushing = flushRegularly(usage);
  const stores = createStores(resources, database);
  const durations = measureQueries(database, definition.identity.metricsPrefix);
  const limiter = overrides.limiter ?? (await createRedisLimiter(options, now, durations.ofRedis));
  const authenticator = createAuthenticator({ store: keys, prefix: config.keyPrefix, now });
  await Promise.all([
    database.connect().catch(warn('a connection to the database could not be opened yet')),
    // Without Redis the service starts nevertheless, and counts in memory.
    limiter.ready(REDIS_WAIT_MS).catch(() => {}),
  ]);
  const operations = listOperations(router);
  const { limitsPer } = config;
  const revokeKey = createRevoke(keys, authenticator, now);
  const check = overrides.checkReadiness ?? (() => checkService(definition, database));
  const { app, probes } = await buildApp({
    definition,
    config,
    log,
    now,
    router,
    operations,
    createContext: createContextFactory({ operations, stores, revokeKey, limitsPer, now }),
    authenticator,
    limiter,
    bans,
    usage: overrides.usage ?? usage,
    readiness: createReadiness({ check, limiter, log }),
    durations: [durations.ofDatabase, ...(config.redisUrls.length > 0 ? [durations.ofRedis] : [])],
    counters: options.counters ?? [],
    countConnections: database.countConnections,
    countKeys: overrides.countKeys ?? (() => countKeys(keys, now())),
    async buildDocument(publicUrl) {
      const { buildDocument } = await import('./docs/document.js');
      return buildDocument({ ...config, definition, resources, publicUrl });
    },
    connections: overrides.connections,
    overload: overrides.overload,
  });
  const endCleanup = cleanUpRegularly(database, usages, config.usageDays, warn);
  /** Call it after the app is closed and before the database is. */
  const close = async () => {
    await endCleanup();
    await authenticator.close();
    bans.close();
    await endFlushing();
    await usage.close();
    await limiter.close();
    await closeSubscribers();
  };
  return { app, probes, keys, limiter, close };
}

function cleanUpRegularly(
  database: Database,
  usages: Pick<UsageStore, 'deleteExpired'>,
  usageDays: number,
  warn: (message: string) => (error: unknown) => void,
) {
  const cleanUp = async () => {
    await deleteExpiredCreates(database).catch(warn('expired idempotency keys could not be deleted'));
    await usages.deleteExpired(usageDays).catch(warn('old usage could not be deleted'));
  };
  return repeat(() => CLEANUP_INTERVAL_MS, cleanUp);
}

/** By the name of their resource. A call that takes too long fails as an outage. */
function createStores(resources: readonly Resource[], database: Database) {
  const stores = resources.map(({ name, createStore }) => {
    const store = createStore(database);
    checkStore(name, store);
    return [name, withOutages(OPERATION_TIMEOUT_MS, store)];
  });
  return Object.fromEntries(stores);
}

function createRedisLimiter(
  { definition, config: { redisUrls, readRedisUrls }, log }: ServiceOptions,
  now: () => number,
  durations: ReturnType<typeof createDurations>,
) {
  return createLimiter({
    windows: definition.windows,
    redisUrls,
    readRedisUrls,
    log,
    now,
    observeCommand: (seconds) => durations.observe(seconds),
    commandTimeoutMs: REDIS_TIMEOUT_MS,
    channelName: BATCH_CHANNEL,
  });
}

import { channel } from 'node:diagnostics_channel';
import { createLimiter } from '@animal-store/limits';
import type { FastifyBaseLogger } from 'fastify';
import { type AppOptions, buildApp } from './app.js';
import type { Database } from './connections/client.js';
import { detectOutage, withOutages } from './connections/outage.js';
import type { Definition } from './definition/definition.js';
import { type Authenticator, createAuthenticator } from './keys/authenticator.js';
import { createBans } from './keys/bans.js';
import { testPrefix } from './keys/format.js';
import { createKeyStore, type KeyStore } from './keys/store.js';
import { checkDatabase } from './monitoring/database-check.js';
import { measureQueries } from './monitoring/query-durations.js';
import { createRouter, type Resource } from './operations/resource.js';
import { checkStore } from './operations/resource-check.js';
import type { Config } from './process/config.js';
import { deleteExpiredCreates } from './tables/idempotency.js';
import { BATCH_CHANNEL } from './timing/batch-channel.js';
import type { createDurations } from './timing/durations.js';
import { repeat } from './timing/repeat.js';
import { OPERATION_TIMEOUT_MS, REDIS_TIMEOUT_MS, withTimeout } from './timing/timeouts.js';
import { flushRegularly, UNNAMED_CALL, UsageCounter } from './usage/counter.js';
import { createUsageStore, type UsageStore } from './usage/store.js';

/** How long the start waits for Redis, so that not even the first requests are counted in memory. */
const REDIS_WAIT_MS = 2_000;
/** How long before its expiry a key shows in the metrics. */
const EXPIRY_WARNING_MS = 7 * 86_400_000;
/** How often expired idempotency keys and old usage are deleted. */
const CLEANUP_INTERVAL_MS = 60 * 60 * 1000;

/** Published when the last request has been answered: what subscribers hand to `waitFor` is awaited before the end. */
const closeChannel = channel('animal-store.close');

type ServiceConfig = Omit<Config, 'appEnv' | 'databaseUrl' | 'dataDir' | 'logLevel' | 'port'>;

export type Service = Awaited<ReturnType<typeof createService>>;

export interface ServiceOptions {
  readonly definition: Definition;
  readonly config: ServiceConfig;
  readonly database: Database;
  readonly log: FastifyBaseLogger;
  /** Counters of the process, for the metrics */
  readonly counters?: AppOptions['counters'];
  /** The clock, in Unix milliseconds. Default `Date.now` */
  readonly now?: () => number;
  readonly resources: readonly Resource[];
  /** For tests: replaces parts that would be built from the configuration */
  readonly overrides?: Partial<AppOptions>;
}

/** Composes the service, ready but not listening yet: for the process, the tests and the bench alike. */
export async function createService(options: ServiceOptions) {
  const {
    definition,
    config,
    database,
    log,
    resources,
    counters = [],
    now = Date.now,
    overrides = {},
  } = options;
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
  const { app, probes } = await buildApp({
    ...config,
    definition,
    connections: { keepAliveTimeout: config.keepAliveSeconds * 1_000 },
    log,
    now,
    router,
    stores,
    authenticator,
    limiter,
    bans,
    usage,
    revokeKey: createRevoke(keys, authenticator, now),
    canRehearse: config.keyPrefix === testPrefix(definition.identity.keyPrefix),
    countConnections: database.countConnections,
    checkReadiness: () => checkReadiness(definition, database),
    counters,
    durations: [durations.ofDatabase, ...(config.redisUrls.length > 0 ? [durations.ofRedis] : [])],
    countKeys: () => countKeys(keys, now()),
    async buildDocument(publicUrl) {
      const { buildDocument } = await import('./docs/document.js');
      return buildDocument({ ...config, definition, resources, publicUrl });
    },
    ...overrides,
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

/** Revokes a key, and lets this process forget what it knows of it. */
function createRevoke(
  keys: Pick<KeyStore, 'revoke'>,
  authenticator: Pick<Authenticator, 'forget'>,
  now: () => number,
) {
  return async (id: string): Promise<void> => {
    const revocation = keys.revoke(id, new Date(now()));
    // If its result is late or lost, the key may be revoked all the same.
    await detectOutage(withTimeout(OPERATION_TIMEOUT_MS, revocation)).finally(() => authenticator.forget(id));
  };
}

/** Resolves with a warning, if there is one, while requests can be served. */
async function checkReadiness(definition: Definition, database: Database): Promise<string | undefined> {
  // Together with the others, because a process that is late has no time for one after the other.
  const statements = database.checkStatements();
  statements.catch(() => {});
  const reads = { ...database, pool: database.reads.pool };
  const warning = await checkDatabase(definition, reads);
  await statements;
  return warning;
}

/** @param at Unix milliseconds */
async function countKeys(keys: Pick<KeyStore, 'countBanned' | 'countExpiring'>, at: number) {
  const [now, soon] = [new Date(at), new Date(at + EXPIRY_WARNING_MS)];
  const [banned, expiring] = await Promise.all([keys.countBanned(now), keys.countExpiring(now, soon)]);
  return { banned, expiring };
}

/** Waits for what subscribers of the channel still have to send, such as a tracer its spans. */
async function closeSubscribers(): Promise<void> {
  const pending: PromiseLike<unknown>[] = [];
  closeChannel.publish({ waitFor: (promise: PromiseLike<unknown>) => pending.push(promise) });
  await Promise.allSettled(pending);
}

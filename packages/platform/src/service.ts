import { channel } from 'node:diagnostics_channel';
import { IDENTITY } from '@animal-store/definition/identity';
import { WINDOWS } from '@animal-store/definition/plans';
import { createLimiter } from '@animal-store/limits';
import type { FastifyBaseLogger } from 'fastify';
import { type AppOptions, buildApp } from './app.js';
import type { Database } from './connections/client.js';
import { detectOutage, withOutages } from './connections/outage.js';
import { createAuthenticator } from './keys/authenticator.js';
import { createBans } from './keys/bans.js';
import { TEST_PREFIX } from './keys/format.js';
import { describeGap, findHistoryGap } from './keys/history.js';
import { createKeyStore } from './keys/store.js';
import { checkSchema } from './migrations/grants.js';
import { createRouter, type Resource } from './operations/resource.js';
import type { Config } from './process/config.js';
import { deleteExpiredCreates } from './tables/idempotency.js';
import { BATCH_CHANNEL } from './timing/batch-channel.js';
import { createDurations } from './timing/durations.js';
import { repeat } from './timing/repeat.js';
import { OPERATION_TIMEOUT_MS, REDIS_TIMEOUT_MS, withTimeout } from './timing/timeouts.js';
import { flushRegularly, UNNAMED_CALL, UsageCounter } from './usage/counter.js';
import { createUsageStore } from './usage/store.js';

/** How long the start waits for Redis, so that not even the first requests are counted in memory. */
const REDIS_WAIT_MS = 2_000;
/** How long before its expiry a key shows in the metrics. */
const EXPIRY_WARNING_MS = 7 * 86_400_000;
/** How often expired idempotency keys and old usage are deleted. */
const CLEANUP_INTERVAL_MS = 60 * 60 * 1000;

/** Published when the last request has been answered: what subscribers hand to `waitFor` is awaited before the end. */
const closeChannel = channel(`${IDENTITY.name}.close`);

type ServiceConfig = Omit<Config, 'appEnv' | 'databaseUrl' | 'dataDir' | 'logLevel' | 'port'>;

export type Service = Awaited<ReturnType<typeof createService>>;

export interface ServiceOptions {
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
  const { config, database, log, resources, counters = [], now = Date.now, overrides = {} } = options;
  const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message);
  const router = createRouter(resources);
  const keys = createKeyStore(database, config.keyPrefix);
  const bans = createBans({ store: keys, now, log });
  const usages = createUsageStore(database);
  const usage = new UsageCounter({
    store: usages,
    operations: [...Object.keys(router._def.procedures), UNNAMED_CALL],
    now,
    warn: warn('usage could not be stored yet; it is tried again'),
  });
  const endFlushing = flushRegularly(usage);
  const stores = resources.map((resource) => ({ ...resource, store: resource.createStore(database) }));
  const { redisUrls, readRedisUrls } = config;
  // Created here and not by the database: the commands have no metrics, and loading prom-client is a sixth of their time.
  const queryDurations = createDurations(
    'database_query_duration_seconds',
    'How long queries took, including failed ones; one statement may serve several requests',
    ['statement'],
  );
  database.observeQueries((seconds, statement) => queryDurations.observe({ statement }, seconds));
  const redisDurations = createDurations(
    'redis_command_duration_seconds',
    'How long commands to Redis took, including failed ones',
  );
  const limiter =
    overrides.limiter ??
    (await createLimiter({
      windows: WINDOWS,
      redisUrls,
      readRedisUrls,
      log,
      now,
      observeCommand: (seconds) => redisDurations.observe(seconds),
      commandTimeoutMs: REDIS_TIMEOUT_MS,
      channelName: BATCH_CHANNEL,
    }));
  const authenticator = createAuthenticator({ store: keys, prefix: config.keyPrefix, now });
  await Promise.all([
    database.connect().catch(warn('a connection to the database could not be opened yet')),
    // Without Redis the service starts nevertheless, and counts in memory.
    limiter.ready(REDIS_WAIT_MS).catch(() => {}),
  ]);
  const { app, probes } = await buildApp({
    ...config,
    connections: { keepAliveTimeout: config.keepAliveSeconds * 1_000 },
    log,
    now,
    router,
    stores: Object.fromEntries(
      stores.map(({ name, store }) => [name, withOutages(OPERATION_TIMEOUT_MS, store)]),
    ),
    authenticator,
    limiter,
    bans,
    usage,
    async revokeKey(id) {
      const revocation = keys.revoke(id, new Date(now()));
      // If its result is late or lost, the key may be revoked all the same.
      await detectOutage(withTimeout(OPERATION_TIMEOUT_MS, revocation)).finally(() =>
        authenticator.forget(id),
      );
    },
    canRehearse: config.keyPrefix === TEST_PREFIX,
    countConnections: database.countConnections,
    async checkReadiness() {
      // Together with the others, because a process that is late has no time for one after the other.
      const statements = database.checkStatements();
      statements.catch(() => {});
      const reads = { ...database, pool: database.reads.pool };
      await checkSchema(reads);
      const gap = await findHistoryGap(reads);
      await statements;
      return gap && describeGap(gap);
    },
    counters,
    durations: [queryDurations, ...(redisUrls.length > 0 ? [redisDurations] : [])],
    async countKeys() {
      const [at, soon] = [new Date(now()), new Date(now() + EXPIRY_WARNING_MS)];
      const [banned, expiring] = await Promise.all([keys.countBanned(at), keys.countExpiring(at, soon)]);
      return { banned, expiring };
    },
    async buildDocument(publicUrl) {
      const { buildDocument } = await import('./docs/document.js');
      return buildDocument({ ...config, resources, publicUrl });
    },
    ...overrides,
  });
  const cleanUp = async () => {
    await deleteExpiredCreates(database).catch(warn('expired idempotency keys could not be deleted'));
    await usages.deleteExpired(config.usageDays).catch(warn('old usage could not be deleted'));
  };
  const endCleanup = repeat(() => CLEANUP_INTERVAL_MS, cleanUp);
  /** Call it after the app is closed and before the database is. */
  const close = async () => {
    await endCleanup();
    await authenticator.close();
    bans.close();
    await endFlushing();
    await usage.close();
    await limiter.close();
    const pending: PromiseLike<unknown>[] = [];
    closeChannel.publish({ waitFor: (promise: PromiseLike<unknown>) => pending.push(promise) });
    await Promise.allSettled(pending);
  };
  return { app, probes, keys, limiter, close };
}

import cluster from 'node:cluster';
import type { AddressInfo } from 'node:net';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { type AppOptions, buildApp } from './app.js';
import { type Config, toLocalUrl } from './config.js';
import type { Database } from './database/client.js';
import { checkMigrations } from './database/source.js';
import { deleteExpiredCreates } from './idempotency.js';
import { openKeyring } from './keys/keyring.js';
import type { KeyStore } from './keys/store.js';
import { createLimiter, type Limiter } from './limits/limiter.js';
import { answerQuestions } from './limits/remote.js';
import { buildDocument } from './openapi/document.js';
import { createRouter, type Resource } from './resource.js';
import { resources as ownResources } from './router.js';
import { KEY_LOOKUP_TIMEOUT_MS, OPERATION_TIMEOUT_MS, withTimeout } from './timeouts.js';

/** How long a start waits for Redis, so that not even the first requests are counted in memory. */
const REDIS_WAIT_MS = 2_000;
/** How often expired idempotency keys and old usage are deleted. */
const CLEANUP_INTERVAL_MS = 60 * 60 * 1000;

type ServiceConfig = Pick<
  Config,
  | 'anonymousPerMinute'
  | 'corsOrigins'
  | 'host'
  | 'keyPrefix'
  | 'publicUrl'
  | 'redisUrls'
  | 'stagingUrl'
  | 'trustProxy'
>;

export interface ServiceOptions {
  readonly config: ServiceConfig;
  readonly database: Database;
  readonly databaseUrl: string;
  readonly log: FastifyBaseLogger;
  /** The clock, in Unix milliseconds. Default `Date.now` */
  readonly now?: () => number;
  /** Default: those of router.ts. */
  readonly resources?: readonly Resource[];
  /** Replace the parts that the configuration would build, for tests. */
  readonly parts?: Partial<AppOptions>;
}

/** The running service without its process: not listening yet, ready to serve. */
export interface Service {
  readonly app: FastifyInstance;
  readonly keys: KeyStore;
  readonly limiter: Limiter;
  /** Call it after the app is closed and before the database is. */
  close(): Promise<void>;
}

/** Puts the service together: the one place that does, for the process, the tests and the bench. */
export async function createService(options: ServiceOptions): Promise<Service> {
  const {
    config,
    database,
    databaseUrl,
    log,
    now = Date.now,
    resources = ownResources,
    parts = {},
  } = options;
  const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message);
  const router = createRouter(resources);
  const operations = Object.keys(router._def.procedures);
  const keyring = openKeyring({ ...config, database, databaseUrl, operations, now, warn });
  const stores = resources.map((resource) => ({ ...resource, store: resource.createStore(database) }));
  const limiter = parts.limiter ?? createLimiter({ redisUrls: config.redisUrls, log });
  await Promise.all([limiter.ready(REDIS_WAIT_MS), warmUp(keyring.store, stores)]);
  let localUrl = '';
  const publicUrl = parts.publicUrl ?? (() => config.publicUrl ?? localUrl);
  const app: FastifyInstance = await buildApp({
    ...config,
    log,
    limiter,
    router,
    dependencies: {
      stores: Object.fromEntries(
        stores.map(({ name, store }) => [name, withTimeout(OPERATION_TIMEOUT_MS, store)]),
      ),
      now,
    },
    authenticator: withTimeout(KEY_LOOKUP_TIMEOUT_MS, keyring.authenticator),
    usage: keyring.usage,
    checkDatabase: () => checkMigrations(database.pool),
    pool: database.use,
    ...(cluster.worker ? { worker: cluster.worker.id } : {}),
    document: () => buildDocument({ resources, publicUrl: publicUrl(), stagingUrl: config.stagingUrl }),
    ...parts,
    publicUrl,
  });
  // Kept, because the last requests are answered after the server has stopped listening.
  app.addHook('onListen', async () => {
    localUrl = toLocalUrl(config.host, (app.server.address() as AddressInfo).port);
  });
  const asked = warn('the command line cannot ask after limits for now');
  const questions =
    config.redisUrls.length === 0 ? answerQuestions({ databaseUrl, limiter, warn: asked }) : undefined;
  const deleteExpired = async () => {
    await deleteExpiredCreates(database.prisma, Date.now()).catch(
      warn('expired idempotency keys were not removed'),
    );
    await keyring.forgetOld();
  };
  const cleanup = setInterval(deleteExpired, CLEANUP_INTERVAL_MS);
  void deleteExpired();
  const close = async () => {
    clearInterval(cleanup);
    questions?.close();
    await keyring.close();
    await limiter.close();
  };
  return { app, keys: keyring.store, limiter, close };
}

/**
 * Runs each kind of query once. The first query of a process opens a connection and loads Prisma's engine, which on a busy
 * machine takes longer than a request may wait: the first requests would get a 503.
 */
async function warmUp(
  keys: Pick<KeyStore, 'findByHash'>,
  stores: readonly (Resource & { readonly store: object })[],
): Promise<void> {
  await Promise.allSettled([
    keys.findByHash(new Uint8Array(32)),
    ...stores.map(({ warmUp, store }) => warmUp(store)),
  ]);
}

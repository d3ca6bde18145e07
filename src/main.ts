import cluster from 'node:cluster';
import { lookup } from 'node:dns/promises';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from './app.js';
import { type Config, readConfig, toLocalUrl } from './config.js';
import { answerWithin, LOOKUP_BOUND_MS, OPERATION_BOUND_MS } from './database/deadline.js';
import { checkMigrations, type DatabaseSource, openSource, seedCatalogue } from './database/source.js';
import { hasDevelopmentKey, provideDevelopmentKey } from './keys/development-key.js';
import { openKeyring } from './keys/keyring.js';
import { createKeyStore, type KeyStore } from './keys/store.js';
import { createLimiter } from './limits/limiter.js';
import { answerQuestions } from './limits/remote.js';
import { createLogger } from './log.js';
import { buildDocument } from './openapi.js';
import { OperatorError } from './operator-error.js';
import { createOrderStore, type OrderStore } from './orders/store.js';
import { createPetStore, type PetStore } from './pets/store.js';
import { exitWith, loadEnvironmentFile } from './process.js';
import { appRouter } from './router.js';
import { DRAIN_SPREAD_MS, runWorkers } from './workers.js';

/** How long requests may take to finish after a signal, in milliseconds; a worker may have been told of it later. */
const DRAIN_TIMEOUT_MS = 10_000 - (cluster.isWorker ? DRAIN_SPREAD_MS : 0);
/** From the signal to the end of the process at the latest, in milliseconds. */
const LAST_RESORT_MS = 11_500;
/** How often connections that have become idle since are closed, in milliseconds. */
const SWEEP_INTERVAL_MS = 50;
/** How long a start waits for Redis, so that not even the first requests are counted in memory, in milliseconds. */
const REDIS_WAIT_MS = 2_000;
/** How often expired idempotency keys and old usage are removed, in milliseconds. */
const FORGET_INTERVAL_MS = 60 * 60 * 1000;

try {
  loadEnvironmentFile();
  const stop = waitForStop();
  void stop.then(() => setTimeout(giveUp, LAST_RESORT_MS).unref());
  const config = readConfig(process.env);
  const log = await createLogger(config);
  const source = await openSource({ config, role: 'service', log });
  try {
    const greeting = source.isEmbedded ? await furnish(config, source) : '';
    if (!source.isEmbedded) await checkMigrations(source.database.pool);
    if (config.workers > 1 && cluster.isPrimary) await supervise(config, log, source, greeting, stop);
    else await serve(config, log, source, greeting, stop);
  } finally {
    await source.close();
  }
  process.exit(0);
} catch (error) {
  exitWith(error);
}

/** Serves until told to stop, and until what was running then has ended. */
async function serve(
  config: Config,
  log: Logger,
  source: DatabaseSource,
  greeting: string,
  stop: Promise<string>,
): Promise<void> {
  const { app, close } = await assemble(config, log, source);
  await listen(app, config);
  process.stdout.write(greeting.replaceAll('{url}', toLocalUrl(config.host, readPort(app))));
  log.flush();
  log.info(`${await stop}: finishing what is running`);
  log.flush();
  await drain(app);
  await close();
}

/** On one address: for a name with several, Fastify would open servers beside the one that is drained. */
async function listen(app: FastifyInstance, { host, port }: Config): Promise<void> {
  try {
    const { address } = await lookup(host);
    await app.listen({ port, host: address, listenTextResolver: (url) => `listening on ${url}` });
  } catch (error) {
    throw new OperatorError(
      `The service cannot listen on ${host}, port ${port}: ${(error as Error).message}`,
    );
  }
}

/** Puts the service together over a database, and what goes on beside its requests. */
async function assemble(config: Config, log: Logger, { database, url }: DatabaseSource) {
  const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message);
  const operations = Object.keys(appRouter._def.procedures);
  const keyring = openKeyring({ ...config, database, databaseUrl: url, operations, warn });
  const pets = createPetStore(database);
  const orders = createOrderStore(database);
  const limiter = createLimiter({ redisUrls: config.redisUrls, log });
  await Promise.all([limiter.ready(REDIS_WAIT_MS), warmUp({ keys: keyring.store, pets, orders })]);
  let ownUrl = '';
  const publicUrl = () => config.publicUrl ?? ownUrl;
  const app: FastifyInstance = await buildApp({
    ...config,
    log,
    limiter,
    service: {
      pets: answerWithin(OPERATION_BOUND_MS, pets),
      orders: answerWithin(OPERATION_BOUND_MS, orders),
      now: Date.now,
    },
    authenticator: answerWithin(LOOKUP_BOUND_MS, keyring.authenticator),
    usage: keyring.usage,
    checkDatabase: () => checkMigrations(database.pool),
    pool: database.use,
    ...(cluster.worker ? { worker: cluster.worker.id } : {}),
    publicUrl,
    document: () => buildDocument({ publicUrl: publicUrl(), stagingUrl: config.stagingUrl }),
  });
  // Kept, because the last requests are answered when nothing listens any more.
  app.addHook('onListen', async () => {
    ownUrl = toLocalUrl(config.host, readPort(app));
  });
  const asked = warn('the command line cannot ask after limits for now');
  const questions =
    config.redisUrls.length === 0 ? answerQuestions({ databaseUrl: url, limiter, warn: asked }) : undefined;
  const forget = async () => {
    await pets.forgetExpired(Date.now()).catch(warn('expired idempotency keys were not removed'));
    await keyring.forgetOld();
  };
  const forgetting = setInterval(forget, FORGET_INTERVAL_MS);
  void forget();
  const close = async () => {
    clearInterval(forgetting);
    questions?.close();
    await keyring.close();
    await limiter.close();
  };
  return { app, close };
}

/**
 * Runs each kind of query once. What a process does for the first time, connecting and loading Prisma's engine, takes
 * longer on a busy machine than the look-up of a key may: the first requests would be refused with 503.
 */
async function warmUp(stores: {
  readonly keys: Pick<KeyStore, 'findByHash'>;
  readonly pets: PetStore;
  readonly orders: OrderStore;
}): Promise<void> {
  const { keys, pets, orders } = stores;
  await Promise.allSettled([
    keys.findByHash(new Uint8Array(32)),
    pets.list({ limit: 1 }),
    orders.list({ limit: 1 }),
  ]);
}

/** Leaves serving to workers, which use the database that is open here. */
function supervise(
  config: Config,
  log: Logger,
  { url }: DatabaseSource,
  greeting: string,
  stop: Promise<string>,
): Promise<void> {
  return runWorkers({
    count: config.workers,
    environment: { DATABASE_URL: url },
    stop,
    onListening: ({ port }) =>
      process.stdout.write(greeting.replaceAll('{url}', toLocalUrl(config.host, port))),
    warn: (message) => log.warn(message),
  });
}

/** What the embedded default begins with, a sample catalogue once and a key, and the words that show them. */
async function furnish(config: Config, { database }: DatabaseSource): Promise<string> {
  if (!(await hasDevelopmentKey(config.dataDir))) await seedCatalogue(database.pool);
  const key = await provideDevelopmentKey(config.dataDir, createKeyStore(database, config.keyPrefix));
  return (
    '\nThe Animal Store Service is ready at {url}, its reference page at {url}/docs.\n' +
    'A line to paste, with the development key:\n\n' +
    `  curl -H 'Authorization: Bearer ${key}' '{url}/v1/pets?limit=5'\n\n`
  );
}

function readPort(app: FastifyInstance): number {
  return (app.server.address() as AddressInfo).port;
}

/**
 * Resolves at the first signal, or when a worker's primary is gone. Later signals mean nothing: npm passes a terminal's
 * Ctrl-C on to a process that has it already.
 */
function waitForStop(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, resolve);
    process.on('disconnect', () => resolve('the primary process is gone'));
  });
}

/** Something that has to be waited for does not end: the embedded PostgreSQL is adopted by the next start. */
function giveUp(): never {
  process.stderr.write('Not all could be closed in time.\n');
  process.exit(0);
}

/** Stops accepting, lets what is running finish, and cuts what has not after the time-out. */
async function drain(app: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), DRAIN_TIMEOUT_MS);
  const sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_INTERVAL_MS);
  await app.close();
  clearTimeout(cut);
  clearInterval(sweep);
}

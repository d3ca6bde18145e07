import cluster from 'node:cluster';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from './app.js';
import { type Config, readConfig } from './config.js';
import { checkMigrations, type DatabaseSource, openSource, seedCatalogue } from './database/source.js';
import { createAuthenticator } from './keys/authenticator.js';
import { hasDevelopmentKey, provideDevelopmentKey } from './keys/development-key.js';
import { createKeyStore } from './keys/store.js';
import { createLimiter } from './limits/limiter.js';
import { answerQuestions } from './limits/remote.js';
import { createLogger } from './log.js';
import { createPetStore } from './pets/store.js';
import { exitWith, loadEnvironmentFile } from './process.js';
import { runWorkers } from './workers.js';

/** How long requests may take to finish after a signal, in milliseconds. */
const DRAIN_TIMEOUT_MS = 10_000;
/** How often connections that have become idle since are closed, in milliseconds. */
const SWEEP_INTERVAL_MS = 50;

loadEnvironmentFile();
try {
  const stop = waitForStop();
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
  { database, url }: DatabaseSource,
  greeting: string,
  stop: Promise<string>,
): Promise<void> {
  const keys = createKeyStore(database, config.keyPrefix);
  const limiter = createLimiter({ redisUrls: config.redisUrls, log });
  const warn = (error: unknown) =>
    log.warn({ err: error }, 'the command line cannot ask after limits for now');
  const questions =
    limiter.state === 'memory' ? answerQuestions({ databaseUrl: url, limiter, warn }) : undefined;
  const app = await buildApp({
    ...config,
    log,
    limiter,
    pets: createPetStore(database),
    authenticator: createAuthenticator({ store: keys, prefix: config.keyPrefix, now: Date.now }),
    checkDatabase: () => checkMigrations(database.pool),
    publicUrl: () => config.publicUrl ?? toLocalUrl(config.host, readPort(app)),
  });
  await app.listen({
    port: config.port,
    host: config.host,
    listenTextResolver: (address) => `listening on ${address}`,
  });
  process.stdout.write(greeting.replaceAll('{url}', toLocalUrl(config.host, readPort(app))));
  log.info(`${await stop}: finishing what is running`);
  await drain(app);
  await questions?.close();
  await limiter.close();
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
    '\nThe Animal Store Service is ready at {url}. A line to paste, with its development key:\n\n' +
    `  curl -H 'Authorization: Bearer ${key}' '{url}/v1/pets?limit=5'\n\n`
  );
}

function readPort(app: FastifyInstance): number {
  return (app.server.address() as AddressInfo).port;
}

function toLocalUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
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

/** Stops accepting, lets what is running finish, and cuts what has not after the time-out. */
async function drain(app: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), DRAIN_TIMEOUT_MS);
  const sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_INTERVAL_MS);
  await app.close();
  clearTimeout(cut);
  clearInterval(sweep);
}

import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from './app.js';
import { type Config, readConfig } from './config.js';
import type { Database } from './database/client.js';
import { checkMigrations, type DatabaseSource, openSource, seedCatalogue } from './database/source.js';
import { createAuthenticator } from './keys/authenticator.js';
import { hasDevelopmentKey, provideDevelopmentKey } from './keys/development-key.js';
import { createKeyStore, type KeyStore } from './keys/store.js';
import { createLogger } from './log.js';
import { createPetStore } from './pets/store.js';
import { exitWith, loadEnvironmentFile } from './process.js';

/** How long requests may take to finish after a signal, in milliseconds. */
const DRAIN_TIMEOUT_MS = 10_000;

loadEnvironmentFile();
try {
  const config = readConfig(process.env);
  const log = await createLogger(config);
  await run(config, log);
} catch (error) {
  exitWith(error);
}

async function run(config: Config, log: Logger): Promise<void> {
  const signal = waitForSignal();
  const source = await openSource({ config, role: 'service', log });
  try {
    const app = await start(config, log, source);
    log.info(`${await signal}: finishing what is running`);
    await drain(app);
  } finally {
    await source.close();
  }
}

async function start(
  config: Config,
  log: Logger,
  { database, isEmbedded }: DatabaseSource,
): Promise<FastifyInstance> {
  if (!isEmbedded) await checkMigrations(database.pool);
  const keys = createKeyStore(database, config.keyPrefix);
  const developmentKey = isEmbedded ? await furnish(config.dataDir, database, keys) : undefined;
  const app = await buildApp({
    log,
    pets: createPetStore(database),
    authenticator: createAuthenticator({ store: keys, prefix: config.keyPrefix, now: Date.now }),
    checkDatabase: () => checkMigrations(database.pool),
    publicUrl: () => config.publicUrl ?? readLocalUrl(app, config.host),
    trustProxy: config.trustProxy,
  });
  await app.listen({
    port: config.port,
    host: config.host,
    listenTextResolver: (address) => `listening on ${address}`,
  });
  if (developmentKey !== undefined) greet(readLocalUrl(app, config.host), developmentKey);
  return app;
}

/** What the embedded default begins with: a sample catalogue once, and a key. */
async function furnish(dataDir: string, { pool }: Database, keys: KeyStore): Promise<string> {
  if (!(await hasDevelopmentKey(dataDir))) await seedCatalogue(pool);
  return provideDevelopmentKey(dataDir, keys);
}

function readLocalUrl(app: FastifyInstance, host: string): string {
  const { port } = app.server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function greet(url: string, key: string): void {
  process.stdout.write(
    `\nThe Animal Store Service is ready at ${url}. Its development key, in a line to paste:\n\n` +
      `  curl -H 'Authorization: Bearer ${key}' '${url}/v1/pets?limit=5'\n\n`,
  );
}

/** A terminal's Ctrl-C reaches this process twice when npm passes it on, so that repetitions mean nothing. */
function waitForSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, resolve);
  });
}

/** Stops accepting, lets what is running finish, and cuts what has not after the time-out. */
async function drain(app: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), DRAIN_TIMEOUT_MS);
  await app.close();
  clearTimeout(cut);
}

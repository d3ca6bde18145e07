import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import type { FastifyInstance } from 'fastify';
import { untilConnected } from './connections/outage.js';
import { REST_PREFIX } from './contract/protocol.js';
import { checkDatabase } from './database/check-database.js';
import { addSampleData, type ConfiguredDatabase, openConfiguredDatabase } from './database/open-database.js';
import type { Definition } from './definition/definition.js';
import { hasOwnPage, readCurrentClient } from './docs/routes.js';
import { hasDevelopmentKey, provideDevelopmentKey } from './keys/development-key.js';
import { createKeyStore } from './keys/store.js';
import { buildProbeServer } from './monitoring/probes.js';
import { checkDefinition } from './operations/definition-check.js';
import type { Resource } from './operations/resource.js';
import { checkResources } from './operations/resource-check.js';
import { hasScript, toInstalledCommands } from './operator-errors/installed-commands.js';
import { type Config, readConfig, toLocalUrl } from './process/config.js';
import { forgetAddress, recordAddress } from './process/development-address.js';
import { describeEndOfLife } from './process/end-of-life.js';
import { loadEnvironmentFile } from './process/environment-file.js';
import { exitWithError } from './process/exit.js';
import { listen } from './process/listen.js';
import { createLogger, type ProcessLog } from './process/logger.js';
import { DRAIN_TIMEOUT_MS, FORCE_EXIT_MS, waitForShutdown } from './process/shutdown.js';
import { describeUnsharedLimits } from './process/unshared-limits.js';
import { createService, type Service } from './service.js';
import { checkTurns } from './tables/turns.js';

/** How long the last lines of the log may take, and how long if the end is forced */
const LAST_LINES_MS = 2_000;
const FORCED_LAST_LINES_MS = 300;
/** How often connections that have become idle are closed while draining. */
const CLOSE_IDLE_INTERVAL_MS = 50;

/** What a store hands to the platform. */
export interface Store {
  /** What the store is called, sells and allows */
  readonly definition: Definition;
  /** All resources that the store serves */
  readonly resources: readonly Resource[];
  /** Commands of the store that a newcomer may want to try, with what each does: for the first start on an embedded database */
  readonly nextSteps?: Readonly<Record<string, string>>;
}

/** The process of the service, from its configuration to its exit after a signal. */
export async function run(store: Store): Promise<never> {
  // When many requests wait, V8 may conclude that their objects live long, and allocate such objects in the old generation
  // for as long as the process runs. Everything that they refer to then outlives the collections of new objects.
  setFlagsFromString('--no-allocation-site-pretenuring');
  try {
    checkDefinition(store.definition);
    checkResources(store.definition, store.resources);
    const notices = loadEnvironmentFile();
    const shutdown = waitForShutdown();
    const config = readConfig(store.definition.identity, process.env, process, notices);
    const output = await createLogger(store.definition.identity, config);
    const unshared = describeUnsharedLimits(config.redisUrls, process.env) ?? [];
    for (const notice of notices.concat(unshared)) output.log.warn(notice);
    const ignored = config.ignoredParameters.join(', ');
    if (ignored !== '') output.log.info(`parameters of DATABASE_URL that mean nothing here: ${ignored}`);
    void shutdown.then(() => setTimeout(() => void forceExit(output), FORCE_EXIT_MS).unref());
    try {
      await openAndServe(store, config, output, shutdown);
    } finally {
      await output.close(LAST_LINES_MS);
    }
    process.exit(0);
  } catch (error) {
    exitWithError(store.definition.root, error);
  }
}

/** Opens the database, and closes it after the service. */
async function openAndServe(
  store: Store,
  config: Config,
  output: ProcessLog,
  shutdown: Promise<string>,
): Promise<void> {
  const source = await openConfiguredDatabase({
    definition: store.definition,
    config,
    role: 'service',
    log: output.log,
  });
  try {
    const { database } = source;
    const { definition, resources } = store;
    const warning = await untilConnected(() => checkDatabase(definition, database));
    if (warning !== undefined) output.log.warn(warning);
    const banner = source.isEmbedded ? await seedDevelopment(store, config, source) : '';
    const counters = [output.lostLines];
    // Loaded now, so that no caller waits for it.
    await database.loadPrisma();
    const service = await createService({
      definition,
      config,
      database,
      log: output.log,
      resources,
      counters,
    });
    // Which tables need one is known by now.
    await checkTurns(database).catch(async (error: unknown) => {
      await service.close();
      throw error;
    });
    await serve(service, config, output, shutdown, (url) => {
      output.print(banner.replaceAll('{url}', url));
      if (source.isEmbedded) void recordAddress(config.dataDir, url);
    });
  } finally {
    if (source.isEmbedded) await forgetAddress(config.dataDir);
    await source.close();
  }
}

/** Serves until the shutdown, then finishes the requests that are running. */
async function serve(
  { app, probes, close }: Service,
  config: Config,
  { log }: ProcessLog,
  shutdown: Promise<string>,
  onListening: (url: string) => void,
): Promise<void> {
  const { host, metricsPort } = config;
  const probeServer = buildProbeServer(probes, log);
  try {
    if (metricsPort !== undefined)
      await listen(probeServer, { host, port: metricsPort, variable: 'METRICS_PORT' });
    await listen(app, { ...config, variable: 'PORT' });
    const { port } = app.server.address() as AddressInfo;
    const endOfLife = describeEndOfLife(process.versions.node, Date.now());
    if (endOfLife !== undefined) log.warn(endOfLife);
    onListening(toLocalUrl(host, port));
    log.flush();
    log.info(`${await shutdown}: finishing running requests`);
    log.flush();
    await drain(app);
  } finally {
    await close();
    await probeServer.close();
  }
}

/** What a newcomer may want to do after the first call */
function describeNextSteps({ definition, nextSteps: ofStore }: Store): string {
  const { root } = definition;
  const steps = {
    ...(hasScript(root, 'studio') && { 'npm run studio': 'look at the data, and change it' }),
    [toInstalledCommands(root, 'npm run keys -- --help')]: 'issue keys, and see what they are used for',
    ...ofStore,
  };
  const width = Math.max(...Object.keys(steps).map((command) => command.length));
  const lines = Object.entries(steps).map(
    ([command, purpose]) => `  ${command.padEnd(width)}    ${purpose}\n`,
  );
  const current = readCurrentClient(root);
  const client =
    current === undefined ? '' : `The typed client, in a project of yours: npm install {url}/${current}\n\n`;
  return `What comes next, in another terminal:\n\n${lines.join('')}\n${client}`;
}

/** Adds the sample data to a new embedded database and provides its key. Returns the banner that shows the key. */
async function seedDevelopment(
  store: Store,
  config: Config,
  { database }: ConfiguredDatabase,
): Promise<string> {
  const { definition } = store;
  const { identity, root } = definition;
  const isFirstStart = !(await hasDevelopmentKey(config.dataDir));
  if (isFirstStart) await addSampleData(definition, database);
  const key = await provideDevelopmentKey(
    config.dataDir,
    createKeyStore(database, config.keyPrefix, definition.scopes),
    { plan: definition.developmentPlan, prefix: config.keyPrefix },
  );
  const keyPage = hasOwnPage(root, 'key.html') ? ', what a key has left at {url}/docs/key' : '';
  return (
    `\n${identity.title}: ready at {url}, its reference page at {url}/docs${keyPage}.\n` +
    'Try it with the development key:\n\n' +
    `  curl -H 'Authorization: Bearer ${key}' '{url}${REST_PREFIX}${identity.mainPath}?limit=5'\n\n${isFirstStart ? describeNextSteps(store) : ''}`
  );
}

/** The last resort when something does not close. If PostgreSQL keeps running, the next start adopts it. */
async function forceExit({ log, close }: ProcessLog): Promise<never> {
  log.warn('not everything could be closed in time');
  await close(FORCED_LAST_LINES_MS);
  process.exit(0);
}

/** Stops accepting connections, lets running requests finish, and cuts off those that take too long. */
async function drain(app: FastifyInstance): Promise<void> {
  const closeAll = setTimeout(() => app.server.closeAllConnections(), DRAIN_TIMEOUT_MS);
  const closeIdle = setInterval(() => app.server.closeIdleConnections(), CLOSE_IDLE_INTERVAL_MS);
  await app.close();
  clearTimeout(closeAll);
  clearInterval(closeIdle);
}

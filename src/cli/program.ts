import '../../scripts/node-version.js';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Command } from 'commander';
import { type Config, readConfig, toLocalUrl } from '../config.js';
import { applyMigrations } from '../database/migrations.js';
import { checkMigrations, type DatabaseSource, openSource, seedCatalogue } from '../database/source.js';
import { loadEnvironmentFile } from '../environment-file.js';
import { listOperations } from '../http/operations.js';
import { type ApiKey, createKeyStore } from '../keys/store.js';
import { createUsageStore } from '../keys/usage-store.js';
import { createLimiter } from '../limits/limiter.js';
import { limitsOf } from '../limits/plans.js';
import { buildDocument } from '../openapi/document.js';
import { exitWithError } from '../operator-error.js';
import { appRouter, resources } from '../router.js';
import { addKeyCommands } from './key-commands.js';

/** Only warnings are worth printing here. */
const log = {
  info() {},
  warn: (_bindings: object, message: string) => void process.stderr.write(`${message}\n`),
};

/** How long a command waits for Redis. */
const REDIS_WAIT_MS = 2_000;

const program = new Command('animal-store').description('operate an Animal Store Service');

addKeyCommands(program, {
  write,
  operations: listOperations(appRouter).map(({ name, deprecation }) => ({
    name,
    isDeprecated: deprecation !== undefined,
  })),
  withKeys: (run) =>
    withSource(async ({ database }, { keyPrefix, redisUrls }) => {
      await checkMigrations(database.pool);
      await run({
        store: createKeyStore(database, keyPrefix),
        usage: createUsageStore(database),
        readWindows: (apiKey) => readWindows(apiKey, redisUrls),
      });
    }),
});

program
  .command('migrate')
  .description('apply pending migrations')
  .action(() =>
    withSource(async ({ url }) => {
      const applied = await applyMigrations(url);
      write(
        applied.length === 0
          ? 'The database is up to date.\n'
          : applied.map((name) => `applied ${name}\n`).join(''),
      );
    }),
  );

program
  .command('seed')
  .description('put the sample catalogue into a database without pets')
  .action(() =>
    withSource(async ({ database }) => {
      await checkMigrations(database.pool);
      const isSeeded = await seedCatalogue(database.pool);
      write(
        isSeeded
          ? 'The sample catalogue was added.\n'
          : 'The database already has pets: nothing was changed.\n',
      );
    }),
  );

program
  .command('openapi')
  .description('print the OpenAPI document')
  .action(() => {
    const { host, port, publicUrl = toLocalUrl(host, port), stagingUrl } = readConfig(process.env);
    write(`${JSON.stringify(buildDocument({ resources, publicUrl, stagingUrl }), null, 2)}\n`);
  });

program
  .command('studio')
  .description("open Prisma Studio on the service's database; options are Prisma Studio's own")
  .allowUnknownOption()
  .helpOption(false)
  .argument('[options...]')
  .action((options: string[]) => withSource(({ url }) => runStudio(url, options)));

try {
  loadEnvironmentFile();
  await program.parseAsync();
  // Prisma's engine leaves timers behind that would keep the process alive for seconds.
  process.exit();
} catch (error) {
  exitWithError(error);
}

function write(text: string): void {
  process.stdout.write(text);
}

/** Opens DATABASE_URL or the embedded database, whether or not a service is using it. */
async function withSource(run: (source: DatabaseSource, config: Config) => Promise<void>): Promise<void> {
  const config = readConfig(process.env);
  const source = await openSource({ config, role: 'guest', log });
  try {
    await run(source, config);
  } finally {
    await source.close();
  }
}

/** The windows of a key in Redis; undefined without REDIS_URL. @throws OperatorError when Redis cannot be reached */
async function readWindows(apiKey: ApiKey, redisUrls: readonly string[]) {
  if (redisUrls.length === 0) return undefined;
  // A failing Redis is reported once, by ready().
  const limiter = createLimiter({ redisUrls, log: { info() {}, warn() {} } });
  try {
    await limiter.ready(REDIS_WAIT_MS);
    const { windows } = await limiter.read({ kind: 'key', id: apiKey.id, limits: limitsOf(apiKey) }, 0);
    return windows;
  } finally {
    await limiter.close();
  }
}

/** Ctrl-C reaches Studio directly, and SIGTERM is forwarded. The database is released once Studio has exited. */
async function runStudio(url: string, options: readonly string[]): Promise<void> {
  const env = { ...process.env, DATABASE_URL: url };
  const studio = spawn('prisma', ['studio', ...options], { stdio: 'inherit', env });
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => studio.kill());
  const [code] = await once(studio, 'exit');
  process.exitCode = code ?? 0;
}

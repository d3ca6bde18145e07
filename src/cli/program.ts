import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Command } from 'commander';
import { type Config, loadEnvironmentFile, readConfig, toLocalUrl } from '../config.js';
import { applyMigrations } from '../database/migrations.js';
import { checkMigrations, type DatabaseSource, openSource, seedCatalogue } from '../database/source.js';
import { listOperations } from '../http/operations.js';
import { publish } from '../keys/events.js';
import { createKeyStore } from '../keys/store.js';
import { createUsageStore } from '../keys/usage-store.js';
import { openDesk } from '../limits/desk.js';
import { buildDocument } from '../openapi/document.js';
import { exitWithError } from '../operator-error.js';
import { appRouter, resources } from '../router.js';
import { addKeyCommands } from './key-commands.js';

/** What goes well is not worth a word here. */
const log = {
  info() {},
  warn: (_bindings: object, message: string) => void process.stderr.write(`${message}\n`),
};

const program = new Command('animal-store').description('what the operator of an Animal Store Service does');

addKeyCommands(program, {
  write,
  operations: listOperations(appRouter).map(({ name, deprecation }) => ({
    name,
    isDeprecated: deprecation !== undefined,
  })),
  withKeys: (use) =>
    withSource(async ({ database, url }, { keyPrefix, redisUrls }) => {
      await checkMigrations(database.pool);
      const desk = openDesk({ redisUrls, databaseUrl: url });
      await use({
        store: createKeyStore(database, keyPrefix),
        usage: createUsageStore(database),
        desk,
        announce: (keyId) => publish({ redisUrls, pool: database.pool }, keyId),
      });
      await desk.close();
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
      write(isSeeded ? 'The sample catalogue is in.\n' : 'There are pets already: nothing was changed.\n');
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
  // Prisma's engine leaves timers behind that would hold the process for seconds.
  process.exit();
} catch (error) {
  exitWithError(error);
}

function write(text: string): void {
  process.stdout.write(text);
}

/** DATABASE_URL, or the embedded database, beside a running service or without one. */
async function withSource(use: (source: DatabaseSource, config: Config) => Promise<void>): Promise<void> {
  const config = readConfig(process.env);
  const source = await openSource({ config, role: 'guest', log });
  try {
    await use(source, config);
  } finally {
    await source.close();
  }
}

/** Ctrl-C reaches Studio by itself, and a SIGTERM is passed on; the database is let go when Studio has ended. */
async function runStudio(url: string, options: readonly string[]): Promise<void> {
  const env = { ...process.env, DATABASE_URL: url };
  const studio = spawn('prisma', ['studio', ...options], { stdio: 'inherit', env });
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => studio.kill());
  const [code] = await once(studio, 'exit');
  process.exitCode = code ?? 0;
}

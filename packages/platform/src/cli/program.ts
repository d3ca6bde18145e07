import { IDENTITY } from '@animal-store/definition/identity';
import { Command, CommanderError, Help } from 'commander';
import { detectOutage, toReported, withOutages } from '../connections/outage.js';
import { withStatementTimeout } from '../connections/statement-timeout.js';
import { VERSION } from '../contract/version.js';
import { toInstalledCommands } from '../errors/installed-commands.js';
import { OperatorError } from '../errors/operator-error.js';
import { createKeyHistoryStore, describeGap, findHistoryGap } from '../keys/history.js';
import { createKeyStore } from '../keys/store.js';
import { checkSchema } from '../migrations/grants.js';
import { addSampleData, type DatabaseSource, openSource, type SourceOptions } from '../migrations/source.js';
import type { Resource } from '../operations/resource.js';
import { readConfig, toLocalUrl } from '../process/config.js';
import { loadEnvironmentFile } from '../process/environment-file.js';
import { exitWithError } from '../process/exit.js';
import { COMMAND_CONNECT_TIMEOUT_MS, COMMAND_STATEMENT_TIMEOUT_MS } from '../timing/timeouts.js';
import { createUsageStore } from '../usage/store.js';
import { parseNumber, planExample } from './arguments.js';
import { describeCaller } from './caller.js';
import type { KeyTools } from './command.js';
import { addKeyCommands } from './key-commands.js';
import { addMigrateCommand, type WithSource } from './migrate.js';
import { addPlatformCommand } from './platform-command.js';
import { ReaderGone } from './report-output.js';
import { addServeCommand } from './serve-command.js';
import { runStudio } from './studio.js';

/*
 * Modules that only some commands need are imported where they are used, because loading the whole service would slow
 * down every command.
 */

/** Of a command's log, only warnings are worth printing. */
const warnings = {
  info() {},
  warn: (_bindings: object, message: string) => void process.stderr.write(`${message}\n`),
};

const SERVE = 'keys serve';

/** How long a command waits for the database, over all its statements. */
const COMMAND_TIMEOUT_MS = 60_000;

const EXAMPLES = `
Examples:
  npm run -s keys -- create --name shop --plan ${planExample(1)}
  npm run migrate -- --grant-to service`;

/** docs/operations.md has the same list. */
const EXIT_CODES = `
Exit codes:
  0  the command has done what it says
  1  anything else went wrong, as the message says
  2  wrong usage: an unknown command or option, an invalid value, an id or a hint that fits several keys, --owner without --yes
  3  there is no such key, or the owner has none
  4  the database cannot be reached, or rejects the command: trying again later may help`;

/** What a store hands to the command line. */
export interface CommandOptions {
  /** Called by the commands that need to know the operations */
  readonly loadResources: () => Promise<readonly Resource[]>;
}

/** Runs the command that the arguments of the process name; exits with one of EXIT_CODES if it fails. */
export async function runCommand(options: CommandOptions): Promise<void> {
  // A command whose output nobody reads is still carried out, and closes the database.
  let outputError: Error | undefined;
  process.stdout.on('error', (error) => {
    outputError ??= error;
  });
  process.stderr.on('error', () => {});
  try {
    for (const notice of loadEnvironmentFile()) process.stderr.write(`${notice}\n`);
    await createProgram(options).parseAsync();
    // The callback comes after the error of an earlier write.
    await new Promise((resolve) => process.stdout.write('', resolve));
    if (outputError !== undefined)
      throw new OperatorError(
        `The output could not be written (${outputError.message}); the command was carried out.`,
      );
  } catch (error) {
    // Commander has printed its message; it reports help and --version as errors, too.
    if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : 2);
    if (error instanceof ReaderGone) process.exit(0);
    const reported = toReported(error);
    exitWithError(reported, reported instanceof OperatorError ? reported.exitCode : 1);
  }
}

function createProgram({ loadResources }: CommandOptions): Command {
  const program = new Command(IDENTITY.name)
    .description(`operate the ${IDENTITY.title}`)
    .version(VERSION)
    .exitOverride()
    .configureHelp({
      optionDescription: (option) =>
        `${option.mandatory ? '(required) ' : ''}${Help.prototype.optionDescription(option)}`,
    })
    .addHelpText('after', toInstalledCommands(EXAMPLES))
    .addHelpText('afterAll', EXIT_CODES);

  const keys = addKeyCommands(program, (name, run) =>
    withKeys({ name, grants: 'service', log: warnings }, (createTools) =>
      run({ ...createTools(), loadResources }),
    ),
  );
  addServeCommand(keys, (log, run) =>
    withKeys({ name: SERVE, grants: 'keys', log }, (createTools, database) =>
      run(({ name }) => {
        const caller = name === undefined ? undefined : describeCaller(`${SERVE} for ${name}`);
        return { ...createTools(caller), loadResources };
      }, database),
    ),
  );

  addMigrateCommand(program, withSource);
  addPlatformCommand(program);

  program
    .command('seed')
    .description(`put the sample data into a database without ${IDENTITY.mainTable}`)
    .action(() =>
      withSource(async ({ database }) => {
        await checkSchema(database);
        const isSeeded = await detectOutage(addSampleData(database));
        process.stdout.write(
          `The ${isSeeded ? 'sample data was added' : `database already has ${IDENTITY.mainTable}, or there is no sample data: nothing was changed`}.\n`,
        );
      }),
    );

  program
    .command('openapi')
    .description('print the OpenAPI document')
    .action(async () => {
      const { host, port, publicUrl = toLocalUrl(host, port), stagingUrl } = readConfig(process.env);
      const { buildDocument } = await import('../docs/document.js');
      const resources = await loadResources();
      process.stdout.write(
        `${JSON.stringify(buildDocument({ resources, publicUrl, stagingUrl }), null, 2)}\n`,
      );
    });

  program
    .command('studio')
    .description("open Prisma Studio on the service's database")
    .option('-p, --port <port>', 'the port that Studio listens on', parseNumber('port', 65_535))
    .action(({ port }: { port?: number }) =>
      withSource(async ({ url }) => {
        process.exitCode = await runStudio(url, port);
      }),
    );
  return program;
}

interface KeysOptions extends Pick<SourceOptions, 'log'> {
  readonly name: string;
  readonly grants: 'service' | 'keys';
}

async function withKeys(
  { name, grants, log }: KeysOptions,
  run: (
    createTools: (applicationName?: string) => Omit<KeyTools, 'loadResources'>,
    database: DatabaseSource['database'],
  ) => Promise<void>,
): Promise<void> {
  await withSource(
    async ({ database }, config) => {
      await checkSchema(database, grants);
      const gap = await findHistoryGap(database);
      if (gap !== undefined) log.warn({}, describeGap(gap));
      const createTools = (applicationName?: string) => {
        const timed = withStatementTimeout(database.pool, () => COMMAND_STATEMENT_TIMEOUT_MS, {
          applicationName,
        });
        const patient = { ...database, pool: timed };
        return {
          store: withOutages(COMMAND_TIMEOUT_MS, createKeyStore(patient, config.keyPrefix)),
          usage: withOutages(COMMAND_TIMEOUT_MS, createUsageStore(patient)),
          history: withOutages(COMMAND_TIMEOUT_MS, createKeyHistoryStore(patient)),
        };
      };
      await run(createTools, database);
    },
    { applicationName: describeCaller(name), log },
  );
}

/** Opens DATABASE_URL or the embedded database, even if a service is using it. */
const withSource: WithSource = async (run, options = {}) => {
  const config = readConfig(process.env);
  const connectTimeoutMs = COMMAND_CONNECT_TIMEOUT_MS;
  const source = await openSource({ config, role: 'guest', log: warnings, connectTimeoutMs, ...options });
  try {
    await run(source, config);
  } finally {
    await source.close();
  }
};

import { Command, CommanderError, Help } from 'commander';
import { detectOutage } from '../connections/outage.js';
import { readVersion } from '../contract/version.js';
import { addSampleData } from '../database/open-database.js';
import { checkSchema } from '../migrations/grants.js';
import { checkDefinition } from '../operations/definition-check.js';
import { toInstalledCommands } from '../operator-errors/installed-commands.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { readConfig, toLocalUrl } from '../process/config.js';
import { loadEnvironmentFile } from '../process/environment-file.js';
import { exitWithCommandError } from '../process/exit.js';
import { parseNumber } from './arguments.js';
import type { CommandOptions } from './key-command.js';
import { addKeyCommands } from './keys-command.js';
import { addMigrateCommand } from './migrate.js';
import { addPlatformCommand } from './platform-command.js';
import { ReaderGone } from './report-output.js';
import { addServeCommand } from './serve-command.js';
import { planExample } from './store-arguments.js';
import { runStudio } from './studio.js';
import { withDatabase } from './with-database.js';

/*
 * Modules that only some commands need are imported where they are used, because loading the whole service would slow
 * down every command.
 */

const describeExamples = (plan: string | undefined) => `
Examples:
  npm run -s keys -- create --name shop --plan ${plan}
  npm run migrate -- --grant-to service`;

/** docs/operations.md has the same list. */
const EXIT_CODES = `
Exit codes:
  0  the command has done what it says
  1  anything else went wrong, as the message says
  2  wrong usage: an unknown command or option, an invalid value, an id or a hint that fits several keys, --owner without --yes
  3  there is no such key, or the owner has none
  4  the database cannot be reached, or rejects the command: trying again later may help`;

/** Runs the command that the arguments of the process name; exits with one of EXIT_CODES if it fails. */
export async function runCommand(options: CommandOptions): Promise<void> {
  // A command whose output nobody reads is still carried out, and closes the database.
  let outputError: Error | undefined;
  process.stdout.on('error', (error) => {
    outputError ??= error;
  });
  process.stderr.on('error', () => {});
  try {
    checkDefinition(options.definition);
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
    exitWithCommandError(options.definition.root, error);
  }
}

function createProgram(options: CommandOptions): Command {
  const { definition, loadResources } = options;
  const { root, identity } = definition;
  const program = new Command(identity.name)
    .description(`operate the ${identity.title}`)
    .version(readVersion(root))
    .exitOverride()
    .configureHelp({
      optionDescription: (option) =>
        `${option.mandatory ? '(required) ' : ''}${Help.prototype.optionDescription(option)}`,
    })
    .addHelpText('after', toInstalledCommands(root, describeExamples(planExample(definition, 1))))
    .addHelpText('afterAll', EXIT_CODES);

  addServeCommand(addKeyCommands(program, options), options);
  addMigrateCommand(program, definition);
  addPlatformCommand(program, definition);

  program
    .command('seed')
    .description(`put the sample data into a database without ${identity.mainTable}`)
    .action(() =>
      withDatabase(definition, {}, async ({ database }) => {
        await checkSchema(definition, database);
        const isSeeded = await detectOutage(addSampleData(definition, database));
        process.stdout.write(
          `The ${isSeeded ? 'sample data was added' : `database already has ${identity.mainTable}, or there is no sample data: nothing was changed`}.\n`,
        );
      }),
    );

  program
    .command('openapi')
    .description('print the OpenAPI document')
    .action(async () => {
      const {
        host,
        port,
        publicUrl = toLocalUrl(host, port),
        stagingUrl,
      } = readConfig(identity, process.env);
      const { buildDocument } = await import('../docs/document.js');
      const resources = await loadResources();
      process.stdout.write(
        `${JSON.stringify(buildDocument({ definition, resources, publicUrl, stagingUrl }), null, 2)}\n`,
      );
    });

  program
    .command('studio')
    .description("open Prisma Studio on the service's database")
    .option('-p, --port <port>', 'the port that Studio listens on', parseNumber('port', 65_535))
    .action(({ port }: { port?: number }) =>
      withDatabase(definition, {}, async ({ url }) => {
        process.exitCode = await runStudio(definition, url, port);
      }),
    );
  return program;
}

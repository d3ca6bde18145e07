import { relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  exitWithCommandError,
  loadEnvironmentFile,
  OperatorError,
  withDatabase,
} from '@animal-store/platform/development';
import { Command, CommanderError } from 'commander';
import { addClientCommand } from './client-command.js';
import { findStore, loadStore, type Store, type StoreFolder } from './store.js';

/*
 * `store-tools`: what a store is developed with, in the folder of the store. Commands load what they need themselves, because
 * Prisma's engine and the operations of a store take half a second.
 */
const NAME = /^[a-z][a-z\d_]{0,99}$/;
const EXIT_CODES = `
Exit codes:
  0  the command has done what it says, or nothing is wrong
  1  something is wrong, as the message says
  2  wrong usage
  4  the database cannot be reached, or rejects the command`;

const warn = (message: string) => void process.stderr.write(`${message}\n`);
const log = { info: warn, warn: (_bindings: object, message: string) => warn(message) };

let folder: StoreFolder | undefined;
try {
  await createProgram().parseAsync();
} catch (error) {
  // Commander has printed its message; it reports help and --version as errors, too.
  if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : 2);
  exitWithCommandError(folder?.root ?? pathToFileURL(`${process.cwd()}/`), error);
}

function createProgram(): Command {
  const program = new Command('store-tools')
    .description('develop a store: run these in its folder')
    .exitOverride()
    .addHelpText('after', EXIT_CODES);
  program
    .command('draft <name>')
    .description('write a migration for what schema.prisma and the definition say, and the migrations lack')
    .action(draftMigration);
  program
    .command('check')
    .description('check that migrations, schema.prisma, definition, document and its last release agree')
    .option('--database', 'instead, whether the database of the service agrees with schema.prisma')
    .action(({ database }: { database?: true }) => (database ? checkDatabase() : checkStore()));
  program
    .command('dev')
    .description('build and run the service, and do so again whenever a source file changes')
    .action(async () => {
      const { develop } = await import('./dev.js');
      process.exitCode = await develop(open());
    });
  program
    .command('operate [folder]')
    .description(
      'write alerts, dashboard, roles, systemd units, Kubernetes manifests and a Dockerfile of the store',
    )
    .action(writeFiles);
  program
    .command('packages')
    .description(
      'check that a store and its platform share one copy of what both need, as all commands do first',
    );
  program
    .command('pages')
    .description('build the reference page, with the guides, and the page of a key, which the service serves')
    .action(async () => {
      const { buildPages } = await import('./pages.js');
      printLines([
        `wrote ${await buildPages(await loadStore(open()))}: the service has it from its next start. Build it anew when operations have changed.`,
      ]);
    });
  addClientCommand(program, () => loadStore(open()));
  return program;
}

async function draftMigration(name: string): Promise<void> {
  if (!NAME.test(name))
    throw new OperatorError('The name of a migration is in snake case, such as boat_length.', {
      exitCode: 2,
    });
  const { draft } = await import('./draft.js');
  await withStore(async (store, url) => printLines(await draft(store, url, name)));
}

async function checkStore(): Promise<void> {
  const { check } = await import('./check.js');
  await withStore(async (store, url) => {
    const { lines, isGreen } = await check(store, url);
    printLines(lines);
    if (!isGreen) process.exitCode = 1;
  });
}

/** @param folder from where the command is called; by default docs/ of the store */
async function writeFiles(folder?: string): Promise<void> {
  const from = process.cwd();
  const { hasOwnRunbooks, writeOperations } = await import('./operate.js');
  const { definition, settings } = await loadStore(open());
  const lines = writeOperations(definition, {
    folder: folder === undefined ? 'docs' : relative(process.cwd(), resolve(from, folder)) || '.',
    runbooks: settings.runbooks,
  });
  if (lines.length === 0) return printLines(['All files are as the store says.']);
  const { runbooks } = settings;
  const hint = `Alerts lead to the platform's runbooks. For your own, write ${runbooks}, and the https address of your repository in package.json.`;
  printLines([...lines, ...(hasOwnRunbooks(definition, runbooks) ? [] : [hint])]);
}

/** Changes nothing, and needs no right to create a database. */
async function checkDatabase(): Promise<void> {
  const { describeDrift } = await import('./check.js');
  const store = await loadStore(open());
  await withDatabase(store.definition, { log, isLeftAsItIs: true }, async (source) => {
    const drift = await describeDrift(store, source);
    printLines([drift ?? 'The database agrees with prisma/schema.prisma.']);
    if (drift !== undefined) process.exitCode = 1;
  });
}

/** Runs a command on the server that the configuration names, or on the embedded one, to which nothing is applied. */
async function withStore(run: (store: Store, url: string) => Promise<void>): Promise<void> {
  const store = await loadStore(open());
  await withDatabase(store.definition, { log, isLeftAsItIs: true }, ({ url }) => run(store, url));
}

/** Finds the store, whose folder relative paths of its configuration start from. */
function open(): StoreFolder {
  folder = findStore(process.cwd());
  process.chdir(fileURLToPath(folder.root));
  loadEnvironmentFile().forEach(warn);
  return folder;
}

function printLines(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(''));
}

import type { Command } from 'commander';
import { checkDatabase } from '../database/check-database.js';
import type { Definition } from '../definition/definition.js';
import { toInstalledCommands } from '../operator-errors/installed-commands.js';
import { escapeControls } from '../process/terminal-text.js';
import { createChangeCommands } from './change-commands.js';
import { addKeyCommand, readArguments, toArgument } from './command-line.js';
import { type CommandOptions, type KeyCommand, runNaming } from './key-command.js';
import { ID } from './key-selection.js';
import { createKeyTools } from './key-tools.js';
import type { Printed, Streamed } from './key-view.js';
import { createReportCommands } from './report-commands.js';
import { printReport } from './report-output.js';
import { planExample } from './store-arguments.js';
import { withDatabase } from './with-database.js';

export const createKeyCommands = (definition: Definition): readonly KeyCommand[] => [
  ...createReportCommands(definition),
  ...createChangeCommands(definition),
];

/** The commands that issue and manage keys. Invalid arguments are reported before anything is opened. */
export function addKeyCommands(program: Command, options: CommandOptions): Command {
  const { definition } = options;
  const { root } = definition;
  const keys = program
    .command('keys')
    .description('issue and manage API keys')
    .version(program.version() ?? '')
    .showHelpAfterError('(--help shows the options of a command)')
    .hook('preAction', async () => {
      const { checkResources } = await import('../operations/resource-check.js');
      checkResources(definition, await options.loadResources());
    });
  addExamples(keys, root, [
    `create --name shop --plan ${planExample(definition, 1)}`,
    'list',
    `show ${ID}`,
    `revoke ${ID}`,
  ]);
  for (const each of createReportCommands(definition))
    addAction(addKeyCommand(keys, each), each, options, printReport);
  for (const each of createChangeCommands(definition))
    addAction(addKeyCommand(keys, each), each, options, async (parts) => {
      // Output that nobody has read is an error, because a key would be lost.
      for await (const part of parts) process.stdout.write(part);
    });
  return keys;
}

function addAction(
  command: Command,
  each: KeyCommand,
  options: CommandOptions,
  print: (parts: ReturnType<typeof toParts>) => Promise<void>,
): void {
  const { definition } = options;
  const { name, examples } = each;
  command.action(() => {
    const input = readArguments(command, each);
    const { json = false, quiet = false } = command.opts();
    return withDatabase(definition, { command: `keys ${name}` }, async ({ database }, config) => {
      const warning = await checkDatabase(definition, database);
      if (warning !== undefined) process.stderr.write(`${warning}\n`);
      const tools = createKeyTools(options, database, config);
      const result = await runNaming(each, tools, input, { json, toName: toArgument });
      await print(toParts(result, { json, quiet }));
    });
  });
  addExamples(
    command,
    definition.root,
    examples.map((example) => `${name} ${example}`.trimEnd()),
  );
}

export function toParts(
  result: Printed | Streamed,
  { json, quiet = false }: { readonly json: boolean; readonly quiet?: boolean },
) {
  if ('parts' in result) return result.parts;
  if (json) return [`${escapeControls(JSON.stringify(result.json))}\n`];
  return [`${quiet ? result.key : result.text}\n`];
}

export function addExamples(command: Command, root: URL, examples: readonly string[]): void {
  const lines = examples.map((example) => `\n  npm run -s keys -- ${example}`);
  command.addHelpText('after', toInstalledCommands(root, `\nExamples:${lines.join('')}`));
}

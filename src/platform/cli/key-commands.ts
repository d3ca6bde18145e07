import type { Command } from 'commander';
import { toInstalledCommands } from '../errors/installed-commands.js';
import { escapeControls } from '../errors/terminal-text.js';
import { CHANGES } from './change-commands.js';
import { ID, type KeyCommand, type KeyTools } from './key-command.js';
import { REPORTS } from './report-commands.js';

const COMMANDS: readonly KeyCommand[] = [...REPORTS, ...CHANGES];

/** Opens what a command needs, and closes it afterwards. Its name is shown to others who look at the database. */
export type WithKeys = (name: string, run: (tools: KeyTools) => Promise<void>) => Promise<void>;

/** The commands that issue and manage keys. Invalid arguments are reported before `withKeys` opens anything. */
export function addKeyCommands(program: Command, withKeys: WithKeys): void {
  const keys = program
    .command('keys')
    .description('issue and manage API keys')
    .version(program.version() ?? '')
    .showHelpAfterError('(--help shows the options of a command)');
  addExamples(keys, ['create --name shop --plan pro', 'list', `show ${ID}`, `revoke ${ID}`]);
  for (const { name, description, examples, addArguments, run } of COMMANDS) {
    const command = keys.command(name).description(description);
    addArguments?.(command);
    command.option('--json', 'print one line of JSON').action(() =>
      withKeys(`keys ${name}`, async (tools) => {
        const { json, text, key } = await run(tools, command);
        const output = command.opts().quiet ? key : text;
        process.stdout.write(
          command.opts().json ? `${escapeControls(JSON.stringify(json))}\n` : `${output}\n`,
        );
      }),
    );
    addExamples(
      command,
      examples.map((example) => `${name} ${example}`.trimEnd()),
    );
  }
}

function addExamples(command: Command, examples: readonly string[]): void {
  const lines = examples.map((example) => `\n  npm run -s keys -- ${example}`);
  command.addHelpText('after', toInstalledCommands(`\nExamples:${lines.join('')}`));
}

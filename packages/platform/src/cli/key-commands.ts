import type { Command } from 'commander';
import { toInstalledCommands } from '../errors/installed-commands.js';
import { escapeControls } from '../process/terminal-text.js';
import { planExample } from './arguments.js';
import { CHANGES } from './change-commands.js';
import {
  addKeyCommand,
  type KeyCommand,
  type KeyTools,
  readArguments,
  runNaming,
  toArgument,
} from './command.js';
import { ID } from './key-command.js';
import type { Printed, Streamed } from './key-view.js';
import { REPORTS } from './report-commands.js';
import { printReport } from './report-output.js';

export const COMMANDS: readonly KeyCommand[] = [...REPORTS, ...CHANGES];

/** Opens what a command needs, and closes it afterwards. PostgreSQL shows the name to others. */
export type WithKeys = (name: string, run: (tools: KeyTools) => Promise<void>) => Promise<void>;

/** The commands that issue and manage keys. Invalid arguments are reported before `withKeys` opens anything. */
export function addKeyCommands(program: Command, withKeys: WithKeys): Command {
  const keys = program
    .command('keys')
    .description('issue and manage API keys')
    .version(program.version() ?? '')
    .showHelpAfterError('(--help shows the options of a command)');
  addExamples(keys, [`create --name shop --plan ${planExample(1)}`, 'list', `show ${ID}`, `revoke ${ID}`]);
  for (const each of COMMANDS) {
    const { name, examples } = each;
    const command = addKeyCommand(keys, each);
    command.action(() => {
      const input = readArguments(command, each);
      const { json = false, quiet = false } = command.opts();
      return withKeys(`keys ${name}`, async (tools) => {
        const result = await runNaming(each, tools, input, { json, toName: toArgument });
        const parts = toParts(result, { json, quiet });
        if (REPORTS.includes(each)) await printReport(parts);
        // Output that nobody has read is an error, because a key would be lost.
        else for await (const part of parts) process.stdout.write(part);
      });
    });
    addExamples(
      command,
      examples.map((example) => `${name} ${example}`.trimEnd()),
    );
  }
  return keys;
}

export function toParts(
  result: Printed | Streamed,
  { json, quiet = false }: { readonly json: boolean; readonly quiet?: boolean },
) {
  if ('parts' in result) return result.parts;
  if (json) return [`${escapeControls(JSON.stringify(result.json))}\n`];
  return [`${quiet ? result.key : result.text}\n`];
}

export function addExamples(command: Command, examples: readonly string[]): void {
  const lines = examples.map((example) => `\n  npm run -s keys -- ${example}`);
  command.addHelpText('after', toInstalledCommands(`\nExamples:${lines.join('')}`));
}

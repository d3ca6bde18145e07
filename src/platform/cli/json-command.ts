import { Command, CommanderError, type Option } from 'commander';
import { OperatorError } from '../errors/operator-error.js';
import { isCompleteId } from './arguments.js';
import type { KeyCommand, KeyTools } from './key-command.js';
import { addKeyCommand } from './key-commands.js';
import type { Printed, Streamed } from './key-view.js';

/** Forms of the output other than JSON, and what only the owner of the tables may do. */
const COMMAND_LINE_ONLY = ['--json', '--quiet', '--csv', '--delete-before'];

/**
 * Runs a command of `keys` whose options are the members of an object, in camelCase, and its argument the member `id`:
 * `{"id": "0b54e7c0-…", "perMinute": 5}` is what `0b54e7c0-… --per-minute 5 --json` is on the command line.
 *
 * @throws OperatorError for everything that the command line refuses, and for an id that is not complete
 */
export async function runJsonCommand(
  each: KeyCommand,
  members: unknown,
  tools: KeyTools,
): Promise<Printed | Streamed> {
  const silent = { writeOut() {}, writeErr() {} };
  const command = addKeyCommand(new Command().exitOverride().configureOutput(silent), each);
  let result: Printed | Streamed | undefined;
  command.action(async () => {
    result = await each.run(tools, command);
  });
  try {
    await command.parseAsync(toArguments(command, members), { from: 'user' });
  } catch (error) {
    throw error instanceof CommanderError ? refuse(error.message.replace(/^error: /, '')) : error;
  }
  if (result === undefined) throw new TypeError(`${each.name} did not run`);
  return result;
}

/** No value can be taken for an option: each is in one argument with its own, or behind `--`. */
function toArguments(command: Command, members: unknown): string[] {
  if (typeof members !== 'object' || members === null || Array.isArray(members))
    throw refuse('The body must be a JSON object.');
  const served = command.options.filter(({ long }) => !COMMAND_LINE_ONLY.includes(long ?? ''));
  const options = new Map(served.map((option) => [option.attributeName(), option]));
  const names = command.registeredArguments.length > 0 ? ['id', ...options.keys()] : [...options.keys()];
  const args = ['--json'];
  const operands: string[] = [];
  for (const [name, value] of Object.entries(members)) {
    const option = options.get(name);
    if (option !== undefined) args.push(...toOption(option, value));
    else if (name !== 'id' || !names.includes(name))
      throw refuse(
        `There is no member ${JSON.stringify(name)}: those of ${command.name()} are ${names.join(', ')}.`,
      );
    // Of a person's slip, a prefix makes an error; a program's may name the key of somebody else.
    else if (typeof value === 'string' && isCompleteId(value)) operands.push(value);
    else throw refuse('id must be a complete id.');
  }
  return [...args, '--', ...operands];
}

function toOption(option: Option, value: unknown): string[] {
  const name = option.attributeName();
  if (option.isBoolean()) {
    if (typeof value !== 'boolean') throw refuse(`${name} must be true or false.`);
    return value ? [`${option.long}`] : [];
  }
  const isList = name === 'scopes' && Array.isArray(value) && value.every((each) => typeof each === 'string');
  if (!isList && typeof value !== 'string' && typeof value !== 'number')
    throw refuse(`${name} must be a string or a number${name === 'scopes' ? ', or a list of strings' : ''}.`);
  return [`${option.long}=${value}`];
}

function refuse(message: string): OperatorError {
  return new OperatorError(message, { exitCode: 2 });
}

import { type Command, Option } from 'commander';
import type { z } from 'zod';
import { choicesOf, describeIssue, type Input, type KeyCommand, metaOf } from './key-command.js';

/** Adds a command with its argument and options to the command line, without its action. */
export function addKeyCommand(
  keys: Command,
  { name, description, input, quietConflicts }: KeyCommand,
): Command {
  const command = keys.command(name).description(description);
  for (const [member, type] of Object.entries(input.shape)) {
    const { description: purpose = '', value } = metaOf(type);
    const isRequired = !type.safeParse(undefined).success;
    if (member === 'id') command.argument(isRequired ? '<id>' : '[id]', purpose);
    else {
      const option = new Option([toOption(member), value].filter(Boolean).join(' '), purpose);
      const choices = choicesOf(type);
      command.addOption((choices ? option.choices(choices) : option).makeOptionMandatory(isRequired));
    }
  }
  if (quietConflicts !== undefined)
    command.addOption(new Option('-q, --quiet', 'print only the key').conflicts(['json', ...quietConflicts]));
  return command.addOption(new Option('--json', 'print one line of JSON').conflicts('csv'));
}

/** The input of a command that was called on the command line. Invalid input ends the program as commander does. */
export function readArguments(command: Command, { input }: KeyCommand): z.output<Input> {
  const { json: _json, quiet: _quiet, ...options } = command.opts();
  const [id] = command.args;
  const parsed = input.safeParse({ ...options, ...(id !== undefined && { id }) });
  if (parsed.success) return parsed.data;
  const { path, message } = describeIssue(parsed.error, input, toArgument);
  const [member] = path;
  if (member === undefined) return command.error(`error: ${message}`);
  const subject = member === 'id' ? 'the id' : toArgument(member);
  return command.error(`error: ${subject} is invalid: ${message}`);
}

/** What the command line calls a member */
export const toArgument = (member: string) => (member === 'id' ? 'id' : toOption(member));

const toOption = (member: string) =>
  `--${member.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

import { type Command, Option } from 'commander';
import { z } from 'zod';
import type { Definition } from '../definition/definition.js';
import { OperatorError } from '../errors/operator-error.js';
import type { KeyHistoryStore } from '../keys/history.js';
import type { KeyStore } from '../keys/store.js';
import type { Resource } from '../operations/resource.js';
import type { UsageStore } from '../usage/store.js';
import { isCompleteId } from './arguments.js';
import type { Printed, Streamed } from './key-view.js';

/** What a store hands to the command line. */
export interface CommandOptions {
  /** What the store is called, sells and allows */
  readonly definition: Definition;
  /** Called by the commands that need to know the operations */
  readonly loadResources: () => Promise<readonly Resource[]>;
}

/** What a command works with, open while it runs. */
export interface KeyTools extends CommandOptions {
  readonly store: KeyStore;
  readonly usage: UsageStore;
  readonly history: KeyHistoryStore;
}

/** What a command says about a member of its input */
interface MemberMeta {
  readonly description?: string;
  /** What the option takes, such as `<plan>`; undefined for a switch */
  readonly value?: string;
  /** Not for programs: changes the form of the output, or needs the owner of the tables */
  readonly isForTerminals?: boolean;
}

type Input = z.ZodObject<Readonly<Record<string, z.ZodType>>>;

/** One of the commands of `keys`, defined once for the command line and for programs. */
export interface KeyCommand<Own extends Input = Input> {
  readonly name: string;
  readonly description: string;
  /** What may follow the command's name */
  readonly examples: readonly string[];
  /** Its members are options on the command line (`perMinute` is --per-minute), and `id` is its argument. */
  readonly input: Own;
  /** For a command that issues keys: the options with which it has more than one key to print */
  readonly quietConflicts?: readonly string[];
  run(tools: KeyTools, input: z.output<Own>, form: { readonly json: boolean }): Promise<Printed | Streamed>;
}

export function defineCommand<Own extends Input>(command: KeyCommand<Own>): KeyCommand {
  return command as unknown as KeyCommand;
}

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
  const { path, message } = firstIssue(parsed.error);
  const prefix =
    path[0] === undefined
      ? ''
      : `${path[0] === 'id' ? 'the ' : ''}${toArgument(String(path[0]))} is invalid: `;
  return command.error(`error: ${prefix}${nameMembers(message, input, toArgument)}`);
}

/** What the command line calls a member */
export const toArgument = (member: string) => (member === 'id' ? 'id' : toOption(member));

/** Runs a command. Its errors name members of its input in braces, which are replaced by names that their reader knows. */
export async function runNaming(
  { run, input: type }: KeyCommand,
  tools: KeyTools,
  input: z.output<Input>,
  { json, toName }: { readonly json: boolean; readonly toName: (member: string) => string },
): Promise<Printed | Streamed> {
  try {
    return await run(tools, input, { json });
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    const { message, exitCode, cause } = error;
    throw new OperatorError(nameMembers(message, type, toName), { exitCode, cause });
  }
}

/**
 * Runs a command with the members of a JSON object, where a number may stand for its text.
 *
 * @throws OperatorError for everything that the command line refuses, and for an id that is not complete
 */
export async function runWithJson(
  each: KeyCommand,
  members: unknown,
  tools: KeyTools,
): Promise<Printed | Streamed> {
  if (typeof members !== 'object' || members === null || Array.isArray(members))
    throw refuse('The body must be a JSON object.');
  const { shape } = each.input;
  const names = Object.keys(shape).filter((name) => !metaOf(shape[name]).isForTerminals);
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(members)) {
    if (!names.includes(name))
      throw refuse(
        `There is no member ${JSON.stringify(name)}: those of ${each.name} are ${names.join(', ')}.`,
      );
    // A person sees which key a prefix has found. A program's may find somebody else's key.
    if (name === 'id' && !(typeof value === 'string' && isCompleteId(value)))
      throw refuse('id must be a complete id.');
    given[name] = typeof value === 'number' ? String(value) : value;
  }
  const parsed = each.input.safeParse(given);
  if (parsed.success) return runNaming(each, tools, parsed.data, { json: true, toName: (member) => member });
  const { path, message } = firstIssue(parsed.error);
  throw refuse([...path.map(String), nameMembers(message, each.input, (member) => member)].join(': '));
}

const inner = (type: z.ZodType | undefined) =>
  (type instanceof z.ZodOptional ? type.unwrap() : type) as z.ZodType;

const metaOf = (type: z.ZodType | undefined) => ({ ...inner(type)?.meta(), ...type?.meta() }) as MemberMeta;

const toOption = (member: string) =>
  `--${member.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

function choicesOf(type: z.ZodType): string[] | undefined {
  const member = inner(type);
  return member instanceof z.ZodEnum ? member.options.map(String) : undefined;
}

const firstIssue = ({ issues }: z.ZodError) => issues[0] as z.core.$ZodIssue;

/** Replaces members in braces by their names for the reader. Other braces belong to a value. */
const nameMembers = (message: string, { shape }: Input, toName: (member: string) => string) =>
  message.replaceAll(/\{(\w+)\}/g, (text, member: string) =>
    Object.hasOwn(shape, member) ? toName(member) : text,
  );

function refuse(message: string): OperatorError {
  return new OperatorError(message, { exitCode: 2 });
}

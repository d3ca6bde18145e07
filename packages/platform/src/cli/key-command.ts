import { z } from 'zod';
import type { Definition } from '../definition/definition.js';
import type { KeyHistoryStore } from '../keys/history.js';
import type { KeyStore } from '../keys/store.js';
import type { Resource } from '../operations/resource.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import type { UsageStore } from '../usage/store.js';
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

export type Input = z.ZodObject<Readonly<Record<string, z.ZodType>>>;

/**
 * One of the commands of `keys`, defined once for two readers: the command line (command-line.ts) and programs, which send JSON
 * (json-input.ts). Its messages name members of its input in braces, which become the reader's names: `--per-minute` and
 * `perMinute`.
 */
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

/** What a message calls a member of the input */
export type ToName = (member: string) => string;

/** Runs a command. */
export async function runNaming(
  { run, input: type }: KeyCommand,
  tools: KeyTools,
  input: z.output<Input>,
  { json, toName }: { readonly json: boolean; readonly toName: ToName },
): Promise<Printed | Streamed> {
  try {
    return await run(tools, input, { json });
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    const { message, exitCode, cause } = error;
    throw new OperatorError(nameMembers(message, type, toName), { exitCode, cause });
  }
}

export const metaOf = (type: z.ZodType | undefined) =>
  ({ ...inner(type)?.meta(), ...type?.meta() }) as MemberMeta;

/** The choices of an enumeration, undefined for any other member */
export function choicesOf(type: z.ZodType): string[] | undefined {
  const member = inner(type);
  return member instanceof z.ZodEnum ? member.options.map(String) : undefined;
}

const inner = (type: z.ZodType | undefined) =>
  (type instanceof z.ZodOptional ? type.unwrap() : type) as z.ZodType;

/** What is wrong first, and the path of the member that it is about: empty where it is about several */
export function describeIssue({ issues }: z.ZodError, input: Input, toName: ToName) {
  const { path, message } = issues[0] as z.core.$ZodIssue;
  return { path: path.map(String), message: nameMembers(message, input, toName) };
}

/** Replaces members in braces by their names for the reader. Other braces belong to a value. */
const nameMembers = (message: string, { shape }: Input, toName: ToName) =>
  message.replaceAll(/\{(\w+)\}/g, (text, member: string) =>
    Object.hasOwn(shape, member) ? toName(member) : text,
  );

import { OperatorError } from '../operator-errors/operator-error.js';
import { isCompleteId } from './arguments.js';
import {
  describeIssue,
  type KeyCommand,
  type KeyTools,
  metaOf,
  runNaming,
  type ToName,
} from './key-command.js';
import type { Printed, Streamed } from './key-view.js';

/** Programs know members by their own names. */
const toName: ToName = (member) => member;

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
  if (parsed.success) return runNaming(each, tools, parsed.data, { json: true, toName });
  const { path, message } = describeIssue(parsed.error, each.input, toName);
  throw refuse([...path, message].join(': '));
}

function refuse(message: string): OperatorError {
  return new OperatorError(message, { exitCode: 2 });
}

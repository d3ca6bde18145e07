import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { OperatorError } from '../operator-errors/operator-error.js';
import { VARIABLES } from './config.js';

const ENVIRONMENT_FILE = '.env';
/** A variable and what follows up to a number sign that no space precedes */
const CUT_VALUE = /^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=(?:[ \t]*((?!['"`\s])[^#\n]*[^#\s]))?#/gm;

/**
 * Adds the variables in `.env` of the working directory to the environment, if the file exists. Variables that are
 * already set take precedence.
 *
 * @returns a line about each name that is not a variable of the service, such as `PROT`
 * @throws OperatorError when the file cannot be read, is not text, or would not be read as it looks
 */
export function loadEnvironmentFile(file = ENVIRONMENT_FILE, environment = process.env): string[] {
  if (!existsSync(file)) return [];
  const path = resolve(file);
  const text = decode(readBytes(path), path);
  // Node.js 20 takes a comment in the last line for a variable if no line feed follows.
  const values = parseEnv(`${text}\n`);
  for (const [, name = '', start = ''] of text.matchAll(CUT_VALUE)) {
    // Within a quoted value of several lines, nothing is cut.
    if (values[name] === start)
      throw new OperatorError(
        `${path} has a # in the value of ${name}, which would end there: put the value in quotes, or a space before a comment.`,
      );
  }
  for (const [name, value] of Object.entries(values)) environment[name] ??= value;
  return Object.keys(values)
    .filter((name) => !VARIABLES.has(name))
    .map(
      (name) =>
        `${name} in ${path} is not a variable of the service: docs/configuration.md of @animal-store/platform has all of them.`,
    );
}

function readBytes(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    throw new OperatorError(
      `${path} cannot be read: make it a readable file with a line NAME=value for each variable, or remove it.`,
    );
  }
}

/** Drops a byte order mark. Node.js would read UTF-16 as a file without variables. */
function decode(bytes: Buffer, path: string): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // Reported below, as a text with a NUL is.
  }
  throw new OperatorError(`${path} is not UTF-8 text: save it in that encoding.`);
}

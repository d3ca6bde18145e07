import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import util from 'node:util';
import { closestMatch } from 'leven';
import { OperatorError } from '../errors/operator-error.js';
import { VARIABLES } from './config.js';

const FILE = '.env';
/** A misspelt name differs from the intended one in at most this many letters; a short name in only one. */
const MAX_TYPOS = 2;
const SHORT_NAME_LENGTH = 6;

/**
 * Reads `.env` in the working directory, if it exists. Variables that are already set take precedence. Warns about
 * names that look like a misspelt variable of the service, which would otherwise be ignored silently.
 *
 * @throws OperatorError when it cannot be read
 */
export function loadEnvironmentFile(): void {
  for (const [name, value] of Object.entries(readEnvironmentFile())) {
    // Workers inherit everything from the primary process, which has warned already.
    if (process.env[name] !== undefined) continue;
    process.env[name] = value;
    const intended = findIntendedVariable(name);
    if (intended === undefined) continue;
    process.stderr.write(`${FILE}: the service has no variable ${name}. Did you mean ${intended}?\n`);
  }
}

function readEnvironmentFile(): NodeJS.Dict<string> {
  try {
    return util.parseEnv(readFileSync(FILE, 'utf8'));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return {};
    const reason = code === 'EISDIR' ? 'it is a directory' : message;
    throw new OperatorError(
      `${resolve(FILE)} cannot be read (${reason}): make it a readable file with a line NAME=value for each variable, or remove it.`,
    );
  }
}

/** The variable that a name in the file probably means; undefined for one that is correct, or similar to none. */
function findIntendedVariable(name: string): string | undefined {
  if (VARIABLES.includes(name)) return undefined;
  const maxDistance = name.length <= SHORT_NAME_LENGTH ? 1 : MAX_TYPOS;
  return closestMatch(name.toUpperCase(), VARIABLES, { maxDistance });
}

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { OperatorError } from '../errors/operator-error.js';
import { VARIABLES } from './config.js';

const FILE = '.env';

/**
 * Reads `.env` in the working directory, if it exists. Variables that are already set take precedence. Warns about
 * names that look like a misspelt variable of the service, which would otherwise be ignored silently.
 *
 * @throws OperatorError when it cannot be read
 */
export function loadEnvironmentFile(): void {
  const before = { ...process.env };
  try {
    process.loadEnvFile(FILE);
  } catch {
    // The error says "no such file" of every file that cannot be read, too.
    if (!existsSync(FILE)) return;
    throw new OperatorError(
      `${resolve(FILE)} cannot be read: make it a readable file with a line NAME=value for each variable, or remove it.`,
    );
  }
  for (const name of Object.keys(process.env)) {
    if (name in before || VARIABLES.includes(name)) continue;
    const intended = VARIABLES.find((variable) => isMisspelt(name.toUpperCase(), variable));
    if (intended === undefined) continue;
    process.stderr.write(`${FILE}: the service has no variable ${name}. Did you mean ${intended}?\n`);
  }
}

/** Whether a name differs from the variable in one place: a letter too many, too few or wrong, or two exchanged. */
function isMisspelt(name: string, variable: string): boolean {
  const [shorter, longer] = name.length < variable.length ? [name, variable] : [variable, name];
  let start = 0;
  while (start < shorter.length && shorter[start] === longer[start]) start += 1;
  let end = 0;
  while (end < shorter.length - start && shorter.at(-1 - end) === longer.at(-1 - end)) end += 1;
  const differing = longer.length - start - end;
  return differing <= (shorter.length === longer.length ? 2 : 1);
}

import { readFileSync, statSync } from 'node:fs';

export type Variables = Readonly<Record<string, string | undefined>>;

/** Far more than a URL needs. */
const MAX_BYTES = 65_536;

/**
 * Reads secrets that are files, as Docker and Kubernetes mount them: NAME_FILE names the one whose only line is NAME,
 * without white space around it. The content is never part of a problem.
 *
 * @param names those of the secrets
 * @param areLists whether a file may have several lines
 * @returns the variables with the secrets among them, and what is wrong, a line each
 */
export function readSecretFiles(variables: Variables, names: readonly string[], areLists = false) {
  const set: Record<string, string | undefined> = { ...variables };
  const problems: string[] = [];
  for (const name of names) {
    const path = variables[`${name}_FILE`];
    if (path === undefined) continue;
    if (variables[name] !== undefined) {
      problems.push(`${name} and ${name}_FILE are both set: leave out one of them`);
      continue;
    }
    try {
      set[name] = areLists ? readText(path) : readLine(path);
    } catch (error) {
      problems.push(`${name}_FILE ${(error as Error).message}`);
    }
  }
  return { set, problems };
}

/** Like readText, throws an Error that says what is wrong with the file. */
function readLine(path: string): string {
  const text = readText(path);
  if (/[\r\n]/.test(text)) throw new Error(`names a file with a second line, and may have one only: ${path}`);
  return text;
}

function readText(path: string): string {
  const stats = reading(() => statSync(path));
  // Reading a pipe would wait for a writer.
  if (!stats.isFile()) throw new Error(`does not name a regular file: ${path}`);
  if (stats.size > MAX_BYTES) throw new Error(`names a file of more than ${MAX_BYTES / 1024} KiB: ${path}`);
  // Which takes a byte order mark away, too.
  const text = reading(() => readFileSync(path, 'utf8')).trim();
  if (text === '') throw new Error(`names an empty file: ${path}`);
  return text;
}

function reading<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`cannot be read (${(error as Error).message})`);
  }
}

import { readFileSync } from 'node:fs';

export type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Reads secrets that are files, as Docker and Kubernetes mount them: NAME_FILE names the one whose content is NAME,
 * without the line break at its end. The content is never part of a problem.
 *
 * @param names those of the secrets
 * @returns the variables with the secrets among them, and what is wrong, a line each
 */
export function readSecretFiles(variables: Variables, names: readonly string[]) {
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
      const text = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
      if (text === '') problems.push(`${name}_FILE names an empty file: ${path}`);
      else set[name] = text;
    } catch (error) {
      problems.push(`${name}_FILE cannot be read (${(error as Error).message})`);
    }
  }
  return { set, problems };
}

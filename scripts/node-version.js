import { readFileSync } from 'node:fs';

/*
 * Ends the process with one line when this Node.js is older than package.json demands, instead of a stack from the
 * first missing function. An entry imports it before everything else, and nothing that an entry imports may import by
 * name what Node.js 18 lacks: a missing name fails before any module runs. Old versions have to understand this file.
 */
const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const required = engines.node.replace('>=', '');
const current = process.versions.node;
if (current.localeCompare(required, 'en', { numeric: true }) < 0) {
  process.stderr.write(
    `This is Node.js ${current}, and the service needs ${required} or later: install it from https://nodejs.org or with your version manager.\n`,
  );
  process.exit(1);
}

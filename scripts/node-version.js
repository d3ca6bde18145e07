import { readFileSync } from 'node:fs';

/*
 * Ends the process with one line when package.json does not name this version of Node.js, instead of a stack from the
 * first missing function. An entry imports it before everything else, and nothing that an entry imports may import by
 * name what Node.js 18 lacks: a missing name fails before any module runs. Old versions have to understand this file.
 */
const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const current = process.versions.node;
const [major, minor] = current.split('.').map(Number);
/** The first version of each supported line; all lines after the last will do. */
const supported = engines.node.match(/\d+\.\d+/g);
const isSupported = supported.some((first) => {
  const [firstMajor, firstMinor] = first.split('.').map(Number);
  return major === firstMajor ? minor >= firstMinor : major > firstMajor && first === supported.at(-1);
});
if (!isSupported) {
  const versions = supported.map((first) => `${first}+`).join(' or ');
  process.stderr.write(
    `This is Node.js ${current}, and the service needs ${versions}: install it from https://nodejs.org or with your version manager.\n`,
  );
  process.exit(1);
}

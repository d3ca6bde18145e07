import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { installFolder } from './install.js';
import { runCheckingTool } from './run-tool.js';

/**
 * npm run rename -- --name library --title "Library Service" --key-prefix lib_
 *
 * Gives the service another name, in packages/definition/src/identity.ts and in every file of the repository that repeats it: packages,
 * metrics, manifests, documents and tests. Run it once, before the first deployment: keys, metrics and databases contain
 * the name.
 */
const IDENTITY = 'packages/definition/src/identity.ts';
const USAGE = 'Usage: npm run rename -- --name library --title "Library Service" --key-prefix lib_';
/** The history keeps the old name. Pictures contain none. */
const UNCHANGED = /^(?:CHANGELOG\.md|docs\/releases\/|.*\.png$)/;

const { name = '', title = '', 'key-prefix': keyPrefix = '' } = readOptions();
if (
  !/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(name) ||
  title.trim() === '' ||
  !/^[a-z]{2,8}_$/.test(keyPrefix)
) {
  console.error(
    `${USAGE}\nA name has lower case letters, digits and hyphens, a prefix 2 to 8 letters and an underscore.`,
  );
  process.exit(2);
}

/** None of them where there is another one, such as --help. */
function readOptions() {
  try {
    return parseArgs({
      options: { name: { type: 'string' }, title: { type: 'string' }, 'key-prefix': { type: 'string' } },
    }).values;
  } catch {
    return {};
  }
}

console.log(
  'Formats what it changes with Biome. The packages of tools/, 260 MB, are fetched the first time.',
);
// Before anything is changed: without them, half would be done.
installFolder('tools');

const identity = readFileSync(IDENTITY, 'utf8');
const old = {
  name: readMember('name'),
  title: readMember('title'),
  keyPrefix: readMember('keyPrefix'),
};
const snake = (text) => text.replaceAll('-', '_');
const pascal = (text) => text.replaceAll(/(?:^|-)([a-z])/g, (_, letter) => letter.toUpperCase());
const withoutService = (text) => text.replace(/ Service$/, '');
/** The longest first: one contains the other. */
const replacements = [
  [old.title, title],
  [withoutService(old.title), withoutService(title)],
  [old.name, name],
  [snake(old.name), snake(name)],
  [snake(old.name).toUpperCase(), snake(name).toUpperCase()],
  [pascal(old.name), pascal(name)],
  // In the addresses of headings
  [pascal(old.name).toLowerCase(), pascal(name).toLowerCase()],
];

const paths = execFileSync('git', ['ls-files', '-z'], { encoding: 'utf8' }).split('\0').filter(Boolean);
for (const path of paths.filter((each) => !UNCHANGED.test(each))) {
  const text = readFileSync(path, 'utf8');
  let changed = text;
  for (const [from, to] of replacements) changed = changed.replaceAll(from, to);
  // Before `live` or `test` only, in a pattern as well: elsewhere, the letters may be anything.
  changed = changed.replaceAll(
    new RegExp(`\\b${old.keyPrefix}(?=(?:\\((?:\\?:)?)?(?:live|test)(?:\\b|_))`, 'g'),
    keyPrefix,
  );
  if (path === IDENTITY)
    changed = changed.replace(`keyPrefix: '${old.keyPrefix}'`, `keyPrefix: '${keyPrefix}'`);
  if (changed !== text) writeFileSync(path, changed);
  const file = path.split('/').at(-1) ?? '';
  if (file.includes(old.name)) renameSync(path, path.replace(old.name, name));
}
runCheckingTool('@biomejs/biome', ['check', '--write', '.']);
console.log(`It is called ${title} now. Next: npm install, npm run docs:update, and read the diff.`);

/** A text of packages/definition/src/identity.ts */
function readMember(member) {
  const [, value] = new RegExp(`^  ${member}: '([^']+)',$`, 'm').exec(identity) ?? [];
  if (value === undefined) throw new Error(`${IDENTITY} has no line for ${member}`);
  return value;
}

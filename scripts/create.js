import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { parseDocument } from 'yaml';

/*
 * `npm run create -- DIR` makes a store of the example, with the packages of this checkout in it. Where DIR is such a store
 * already, it replaces the packages and nothing else.
 */
const TEMPLATE = 'examples/boatyard';
/** What a build or a start of the example has left */
const LEFT_OUT = /(?:^|[\\/])(?:node_modules|dist|generated|\.data|\.env)(?:[\\/]|$)/;
const SCOPE = '@animal-store/';
/** The folder of the new store for the packages. Their paths are relative, so that the store can be moved and committed. */
const PACKED = 'packages';
const YARN_SETTINGS = '.yarnrc.yml';
const PNPM_SETTINGS = 'pnpm-workspace.yaml';
const MANAGERS = ['npm', 'pnpm', 'yarn'];
const USAGE = `npm run create -- DIR [options]

Makes a store of its own in DIR, with the packages of this checkout. In the folder of such a store, it replaces the packages.

  --name NAME         its package, and a part of the names of metrics and databases (from the name of DIR)
  --title TITLE       what people call it (from its name)
  --key-prefix PREFIX what its keys begin with (from its name)
  --package-manager   ${MANAGERS.join(', ')} (npm)

On a terminal it asks for a name that is not given.
`;
/** The choices, with what the definition allows, all of which the platform checks at each start. */
const CHOICES = {
  name: { pattern: /^[a-z][a-z\d]*(?:-[a-z\d]+)*$/, rule: 'must be lower case with hyphens' },
  title: { pattern: /^[^'\\\n]+$/, rule: 'must be a line without quotation marks' },
  'key-prefix': {
    pattern: /^[a-z][a-z\d_]{0,4}_$/,
    rule: 'must be lower case with an underscore at its end, and at most six characters',
  },
  'package-manager': {
    pattern: new RegExp(`^(?:${MANAGERS.join('|')})$`),
    rule: `must be one of ${MANAGERS.join(', ')}`,
  },
};

const calledFrom = process.env.INIT_CWD ?? process.cwd();
const { values, positionals } = readArguments();
const folder = resolve(calledFrom, positionals[0]);
const shown = relative(calledFrom, folder) || '.';
const manifestPath = join(folder, 'package.json');
if (isStore()) {
  await import('./build.js');
  replacePackages();
  process.stdout.write(`${shown} has the packages of this checkout. Install them there, and then:

  npm run platform    # copies their migrations and models
  npm run migrate
`);
} else {
  const names = await chooseNames();
  await import('./build.js');
  copyTemplate(names);
  replacePackages();
  const { manager } = names;
  const path = /\s/.test(shown) ? `'${shown}'` : shown;
  process.stdout.write(
    `${shown} is a store of its own. Next:\n\n  cd ${path}\n  ${manager} install\n  ${manager} start\n`,
  );
}

function readArguments() {
  const options = Object.fromEntries(Object.keys(CHOICES).map((name) => [name, { type: 'string' }]));
  const config = { options: { ...options, help: { type: 'boolean' } }, allowPositionals: true };
  const parsed = attempt(() => parseArgs(config), USAGE);
  if (parsed.values.help) {
    process.stdout.write(USAGE);
    process.exit(0);
  }
  if (parsed.positionals.length !== 1) fail(`Name one folder.\n\n${USAGE}`);
  return parsed;
}

/** Whether the folder is a store already. With anything else in it, it ends this process. */
function isStore() {
  if (!existsSync(folder) || attempt(() => readdirSync(folder)).length === 0) return false;
  const { dependencies } = existsSync(manifestPath) ? readJson(manifestPath) : {};
  if (dependencies?.[`${SCOPE}platform`] !== undefined) return true;
  return fail(`${shown} is not empty, and no store: name a folder that does not exist yet.\n`);
}

async function chooseNames() {
  const words =
    basename(folder)
      .toLowerCase()
      .match(/[a-z\d]+/g) ?? [];
  const name = await choose('name', words.join('-').replace(/^[\d-]+/, ''));
  const parts = name.split('-');
  const title = parts.map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join(' ');
  const initials = parts.length > 1 ? parts.map((part) => part.charAt(0)).join('') : name.slice(0, 2);
  return {
    name,
    title: await choose('title', `${title} Service`),
    keyPrefix: await choose('key-prefix', `${initials.slice(0, 5)}_`),
    manager: check('package-manager', values['package-manager'] ?? 'npm'),
  };
}

/** What the flag says, else what is typed on a terminal, else what the folder suggests */
async function choose(option, suggested) {
  if (values[option] !== undefined) return check(option, values[option]);
  if (!process.stdin.isTTY || !process.stdout.isTTY) return check(option, suggested);
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question(`${option.replace('-', ' ')} (${suggested}): `);
  terminal.close();
  return check(option, answer.trim() || suggested);
}

function check(option, value) {
  const { pattern, rule } = CHOICES[option];
  return pattern.test(value) ? value : fail(`--${option} ${rule}, and is ${JSON.stringify(value)}.\n`);
}

function copyTemplate({ name, title, keyPrefix, manager }) {
  const filter = (path) => !LEFT_OUT.test(relative(TEMPLATE, path));
  attempt(() => cpSync(TEMPLATE, folder, { recursive: true, filter }));
  const database = name.replaceAll('-', '_');
  const members = {
    name,
    title,
    keyPrefix,
    metricsPrefix: `${database}_`,
    database,
    systemDir: `/var/lib/${name}`,
  };
  const definition = join(folder, 'src/definition.ts');
  let text = readFileSync(definition, 'utf8');
  for (const [member, value] of Object.entries(members))
    text = text.replace(new RegExp(`(?<=\\b${member}: ')[^']*(?=')`), () => value);
  writeFileSync(definition, text);
  const readme = join(folder, 'README.md');
  const ofExample = readFileSync(readme, 'utf8');
  // What comes before the commands is about the example.
  const commands = ofExample.slice(ofExample.indexOf('\n```')).replace("from 'boatyard'", `from '${name}'`);
  writeFileSync(readme, `# ${title}\n${commands}`);
  const manifest = { ...readJson(manifestPath), name };
  writeJson(manifestPath, manifest);
  if (manager === 'yarn') writeFileSync(join(folder, YARN_SETTINGS), 'nodeLinker: node-modules\n');
  if (manager === 'pnpm') writeSettings((settings) => settings.set('allowBuilds', manifest.allowScripts));
}

/**
 * Packs what the store depends on, and names the files in its package.json. What these packages need of each other is in no
 * registry either, and each package manager has its own place that says where it is.
 */
function replacePackages() {
  rmSync(join(folder, PACKED), { recursive: true, force: true });
  mkdirSync(join(folder, PACKED), { recursive: true });
  const manifest = readJson(manifestPath);
  const isNamed = (name) => name in { ...manifest.dependencies, ...manifest.devDependencies };
  const packages = listPackages(isNamed).map((name) => [name, `file:${PACKED}/${pack(name)}`]);
  for (const kind of [manifest.dependencies, manifest.devDependencies])
    for (const [name, file] of packages) if (kind !== undefined && name in kind) kind[name] = file;
  const others = packages.filter(([name]) => !isNamed(name));
  if (existsSync(join(folder, PNPM_SETTINGS)))
    writeSettings((settings) => {
      for (const [name, file] of others) settings.setIn(['overrides', name], file);
    });
  const field = existsSync(join(folder, YARN_SETTINGS)) ? 'resolutions' : 'overrides';
  manifest[field] = { ...manifest[field], ...Object.fromEntries(others) };
  writeJson(manifestPath, manifest);
}

/** The packages of this repository that the store names, and what they depend on */
function listPackages(isNamed) {
  const manifests = readdirSync('packages').map((name) => readJson(join('packages', name, 'package.json')));
  const found = new Set(manifests.map(({ name }) => name).filter(isNamed));
  for (const name of found) {
    const { dependencies = {} } = manifests.find((each) => each.name === name);
    for (const needed of Object.keys(dependencies)) if (needed.startsWith(SCOPE)) found.add(needed);
  }
  return [...found];
}

/** Returns the name of the file, which changes with its bytes: a lock file keeps others by the same name. */
function pack(name) {
  const target = join(folder, PACKED);
  const source = `./packages/${name.slice(SCOPE.length)}`;
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', target, source];
  // On Windows, npm is a script of the shell.
  const shell = process.platform === 'win32';
  const { status, stdout } = spawnSync('npm', args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 2],
    shell,
  });
  if (status !== 0) fail(`${source} could not be packed into ${target}.\n`);
  const file = stdout.trim();
  const hash = createHash('sha256').update(readFileSync(join(target, file)));
  const renamed = file.replace(/\.tgz$/, `-${hash.digest('hex').slice(0, 8)}.tgz`);
  renameSync(join(target, file), join(target, renamed));
  return renamed;
}

/** Changes what pnpm reads, and leaves the rest of it as it is. */
function writeSettings(change) {
  const path = join(folder, PNPM_SETTINGS);
  const settings = parseDocument(existsSync(path) ? readFileSync(path, 'utf8') : '{}');
  settings.contents.flow = false;
  change(settings);
  writeFileSync(path, String(settings));
}

function readJson(path) {
  return attempt(() => JSON.parse(readFileSync(path, 'utf8')), `It is in ${path}.\n`);
}

function writeJson(path, value) {
  writeFileSync(path, `${JSON.stringify(value, undefined, 2)}\n`);
}

function attempt(run, advice = '') {
  try {
    return run();
  } catch (error) {
    return fail(`${error.message}\n${advice}`);
  }
}

function fail(message) {
  process.stderr.write(message);
  process.exit(1);
}

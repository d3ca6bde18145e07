import './node-version.js';
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { CURRENT_CLIENT, findCurrentClient, listClientSources, packClient } from './client-package.js';
import { run, runTool } from './run-tool.js';

/*
 * Builds everything the service runs from: the Prisma client, dist/, the files of the reference page, and the packed client.
 * Parts that are up to date are skipped, so this runs before every start. With `--check` it also type-checks; otherwise it only
 * compiles. A production install has no tools to build with, and runs the existing build.
 *
 * Messages go to standard error, because the standard output of `npm run -s keys` and the like belongs to the command.
 */
const TO_STDERR = { stdio: ['ignore', 2, 2] };
/** npm writes this file whenever it changes an installed package. */
const INSTALLED = 'node_modules/.package-lock.json';
/** This repository's packages that the service imports. Copies are in dist/, so a deployment needs nothing of packages/. */
const LIBRARIES = ['batch-loader', 'http-server', 'limits', 'platform'].map((name) => `packages/${name}`);
/** What a store is developed with, and what that needs */
const TOOLS = ['client-core', 'compatibility', 'embedded-postgres', 'tools'].map(
  (name) => `packages/${name}`,
);
/** The folders that tsc compiles; each has a src/, a dist/ and a tsconfig.json. */
const PROJECTS = ['.', ...TOOLS, ...LIBRARIES];
/** An empty file whose time of modification is when the last successful compilation started. */
const COMPILED = 'dist/.compiled';
const PAGE_SOURCE = 'packages/reference-page/src';
const DOCUMENT = 'docs/openapi.json';
/** Written last */
const PAGE = 'dist/reference-page/page.html';

process.chdir(join(import.meta.dirname, '..'));
if (existsSync('node_modules/typescript-native')) {
  if (!existsSync(COMPILED)) process.stderr.write('Building, once; later starts build what has changed …\n');
  generateClient();
  await compile();
  if (!isUpToDate(CURRENT_CLIENT, [...listClientSources(), COMPILED, INSTALLED])) await packClient();
  await writeReferencePage();
} else if (process.argv.includes('--check') || !existsSync(PAGE)) {
  process.stderr.write('The development dependencies, which the build needs, are not installed: npm ci\n');
  process.exit(1);
}

function generateClient() {
  const client = 'src/generated/client.ts';
  if (!isUpToDate(client, ['prisma/schema.prisma', 'prisma/platform.prisma', INSTALLED]))
    runTool('prisma', ['generate'], TO_STDERR);
}

/** Starts tsc without its wrapper in Node.js, and only if there is something to do. Each would take 40 ms. */
async function compile() {
  const isChecked = process.argv.includes('--check');
  if (!isChecked && PROJECTS.every(isCompiled)) return;
  const { default: findCompiler } = await import('../node_modules/typescript-native/lib/getExePath.js');
  const startedAt = new Date();
  run(findCompiler(), ['--build', ...(isChecked ? [] : ['--noCheck'])], TO_STDERR);
  LIBRARIES.forEach(copyLibrary);
  for (const project of PROJECTS) {
    const stamp = join(project, COMPILED);
    writeFileSync(stamp, '');
    utimesSync(stamp, startedAt, startedAt);
  }
}

/** Node.js looks into this folder before that of the installed packages. */
function copyLibrary(folder) {
  const manifest = join(folder, 'package.json');
  const target = join('dist/node_modules', JSON.parse(readFileSync(manifest, 'utf8')).name);
  rmSync(target, { recursive: true, force: true });
  cpSync(join(folder, 'dist'), join(target, 'dist'), {
    recursive: true,
    filter: (path) => !path.endsWith('.d.ts'),
  });
  for (const name of ['package.json', 'prisma', 'tracing.mjs']) {
    const path = join(folder, name);
    if (existsSync(path)) cpSync(path, join(target, name), { recursive: true });
  }
}

function isCompiled(project) {
  const source = join(project, 'src');
  // A folder is newer than the stamp when a file in it was removed.
  const names = ['.', ...readdirSync(source, { recursive: true })];
  return isUpToDate(join(project, COMPILED), [
    ...names.map((name) => join(source, name)),
    ...['tsconfig.json', 'tracing.mjs'].map((name) => join(project, name)),
    ...['tsconfig.base.json', INSTALLED],
  ]);
}

async function writeReferencePage() {
  const listFiles = (folder) =>
    // A folder is newer than the page when a file in it was removed.
    ['.', ...readdirSync(folder, { recursive: true })].map((name) => join(folder, name));
  const sources = [...listFiles(PAGE_SOURCE), ...listFiles('docs/guides'), 'docs/icon.svg'];
  const names = [DOCUMENT, 'src/definition/identity.ts', findCurrentClient(), 'scripts/build.js', INSTALLED];
  if (isUpToDate(PAGE, [...sources, ...names])) return;
  // Loaded here, because a production install, which builds nothing, lacks it.
  const [{ writePages }, { IDENTITY }] = await Promise.all([
    import('@animal-store/reference-page'),
    import('../dist/definition/identity.js'),
  ]);
  writePages({ root: '.', identity: IDENTITY, document: JSON.parse(readFileSync(DOCUMENT, 'utf8')) });
}

function isUpToDate(output, sources) {
  const builtAt = modifiedAt(output);
  return sources.every((source) => modifiedAt(source) < builtAt);
}

function modifiedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

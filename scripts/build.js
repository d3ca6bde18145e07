import './node-version.js';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import {
  CURRENT_CLIENT,
  findCurrentClient,
  listClientSources,
  packClient,
  readCurrentClient,
} from './client-package.js';
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
const GUIDES = 'docs/guides';
const IDENTITY_SOURCE = 'src/definition/identity.ts';
const DOCUMENT = 'docs/openapi.json';
const PAGE_OUTPUT = 'dist/reference-page';
/** How the guides find out where /client.tgz leads */
const CLIENT_LOOK_UP = `$(curl -so /dev/null -w '%{redirect_url}' "$ANIMAL_STORE_URL/client.tgz")`;

process.chdir(join(import.meta.dirname, '..'));
if (existsSync('node_modules/typescript-native')) {
  if (!existsSync(COMPILED)) process.stderr.write('Building, once; later starts build what has changed …\n');
  generateClient();
  await compile();
  if (!isUpToDate(CURRENT_CLIENT, [...listClientSources(), COMPILED, INSTALLED])) await packClient();
  await writeReferencePage();
} else if (process.argv.includes('--check') || !existsSync(join(PAGE_OUTPUT, 'page.html'))) {
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

/** The page with the guides as text, the changelog and its feed, and Scalar's bundle, each with a gzipped copy beside it. */
async function writeReferencePage() {
  const names = readdirSync(PAGE_SOURCE);
  const guides = readdirSync(GUIDES)
    .filter((name) => name.endsWith('.md'))
    .sort();
  const sources = [
    ...names.map((name) => join(PAGE_SOURCE, name)),
    // The folder itself is newer than the page when a guide was removed.
    ...[GUIDES, DOCUMENT, IDENTITY_SOURCE, findCurrentClient(), ...guides.map((name) => join(GUIDES, name))],
    ...['build.js', 'guides.js', 'reference-page.js'].map((name) => join('scripts', name)),
  ];
  if (isUpToDate(join(PAGE_OUTPUT, 'page.html'), [...sources, INSTALLED])) return;

  // Loaded here, because a production install, which builds nothing, lacks their imports.
  const [{ prepareGuides }, { prepareStart, renderChangelog, renderPage }, { IDENTITY }] = await Promise.all([
    import('./guides.js'),
    import('./reference-page.js'),
    import('../dist/definition/identity.js'),
  ]);

  const plugin = dirname(createRequire(import.meta.url).resolve('@scalar/fastify-api-reference'));
  const { version } = JSON.parse(readFileSync(join(plugin, '../package.json'), 'utf8'));
  const bundle = `scalar-${version}.js`;
  rmSync(PAGE_OUTPUT, { recursive: true, force: true });
  mkdirSync(PAGE_OUTPUT, { recursive: true });
  writeWithGzip(bundle, readFileSync(join(plugin, 'js/standalone.js')));
  const prepared = prepareGuides(guides.map(readGuide));
  const { description, sections, toAddress } = prepared;
  const start = prepareStart(toAddress);
  writeWithGzip('guides.json', JSON.stringify({ start, description, sections, client: readCurrentClient() }));
  for (const name of names.filter((name) => name !== 'page.html')) {
    writeWithGzip(name, readFileSync(join(PAGE_SOURCE, name)));
  }
  for (const { name, text } of guides.map(readGuide)) writeWithGzip(name, text);
  writeWithGzip('llms.txt', toLlmsText(guides.map(readGuide), IDENTITY));
  const changelog = renderChangelog(readGuide('changelog.md'), toAddress);
  for (const [name, text] of Object.entries(changelog)) writeWithGzip(name, text);
  const openapi = JSON.parse(readFileSync(DOCUMENT, 'utf8'));
  const template = readFileSync(join(PAGE_SOURCE, 'page.html'), 'utf8').replace(
    'docs/scalar.js',
    `docs/${bundle}`,
  );
  const page = renderPage(template, openapi, prepared);
  writeWithGzip('index.md', page.markdown);
  // Last, because its presence marks the folder, and with it the build, as complete.
  writeWithGzip('page.html', page.html);
}

/** The guides with their sections for language models, by the format of https://llmstxt.org. */
function toLlmsText(guides, { title, description }) {
  const links = guides.map(({ name, text }) => {
    const sections = [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
    return `- [${/^# (.+)$/m.exec(text)?.[1]}](docs/${name}): ${sections.join(', ')}`;
  });
  return [
    `# ${title}`,
    `> ${description} REST is under /v1, tRPC under /trpc, and the Model Context Protocol at /mcp. Every call needs an API key as a bearer token.`,
    '## Interface\n\n' +
      '- [OpenAPI document](openapi.json)\n' +
      '- [Tools for assistants, by the Model Context Protocol](mcp): POST only, Streamable HTTP, with the API key as a bearer token\n' +
      `- [Typed client for TypeScript, to install with npm](${readCurrentClient()})`,
    `## Guides\n\n${links.join('\n')}\n`,
  ].join('\n\n');
}

/** A guide as it is served, with the client's immutable address, which the sources cannot know. */
function readGuide(name) {
  const text = readFileSync(join(GUIDES, name), 'utf8');
  return { name, text: text.replaceAll(CLIENT_LOOK_UP, `$ANIMAL_STORE_URL/${readCurrentClient()}`) };
}

function writeWithGzip(name, content) {
  writeFileSync(join(PAGE_OUTPUT, `${name}.gz`), gzipSync(content, { level: 9 }));
  writeFileSync(join(PAGE_OUTPUT, name), content);
}

function isUpToDate(output, sources) {
  const builtAt = modifiedAt(output);
  return sources.every((source) => modifiedAt(source) < builtAt);
}

function modifiedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

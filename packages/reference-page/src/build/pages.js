import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { escapeHtml, prepareGuides } from './guides.js';
import { prepareStart, renderChangelog, renderLlmsText, renderPage } from './text-page.js';

const OUTPUT = 'dist/reference-page';
const GUIDES = 'docs/guides';
/** What the pages load: files of a store called my-store */
const SOURCE = join(import.meta.dirname, '..');
/** What texts are put into, between comments that say which */
const TEMPLATES = ['page.html', 'changelog-page.html'];
const NAMES = /my-store(?=\\?\.example)|my-store-client|my-store|MY_STORE|\bms_|My Store(?: Service)?/g;
/** What the pages say of guides, and what they say where there are none */
const WITHOUT_GUIDES = {
  'These are the guides and the list of operations.': 'This is the list of operations.',
  'guides and operations': 'operations',
  'Guides and operations': 'Operations',
  'Reference and guides': 'Reference',
};
/** A link of the page of a key to a section of the guides, on a line of its own */
const GUIDE_LINK = /^ *<li><a href="\.\.\/docs(#[^"]+)">.*\n/gm;
/** What the report about a key links to, where the guides have it */
const KEY_SECTIONS = ['bans', 'getting-a-key', 'how-an-operation-is-removed'].map(
  (slug) => `#description/${slug}`,
);
const FEED_LINK = /^.*href="changelog\.atom".*\n/m;

export function writePages({ root, identity, document }) {
  const folder = join(root, OUTPUT);
  // The packed client that the service serves: its file, and the name of its package
  const client = readJson(join(root, 'dist/client.json'));
  const hasKeyPage = document.paths['/key'] !== undefined;
  const store = { ...describeStore(identity, client), hasKeyPage };
  const guides = readGuides(root, store);
  const prepared = prepareGuides(guides);
  const { description, sections, toAddress } = prepared;
  const rename = createRenaming(store);
  const changelog = guides.find(({ name }) => name === 'changelog.md');
  const readOwn = (name) =>
    adaptToGuides(rename(readFileSync(join(SOURCE, name), 'utf8'), name), { guides, sections, changelog });

  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const write = (name, content) => {
    writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
    writeFileSync(join(folder, name), content);
  };
  const bundle = readBundle();
  write(bundle.name, bundle.content);
  write(
    'guides.json',
    JSON.stringify({
      ...{ start: prepareStart(store, guides, toAddress), description, sections, client: client?.file },
      synonyms: readJson(join(root, GUIDES, 'synonyms.json')) ?? {},
    }),
  );
  const others = hasKeyPage ? TEMPLATES : [...TEMPLATES, 'key.html'];
  const names = readdirSync(SOURCE).filter((name) => extname(name) !== '' && !others.includes(name));
  for (const name of names) write(name, readOwn(name));
  const icon = join(root, 'docs/icon.svg');
  if (existsSync(icon)) write('icon.svg', readFileSync(icon));
  for (const { name, text } of guides) write(name, text);
  write('llms.txt', renderLlmsText(store, guides));
  const changes = changelog && renderChangelog(readOwn('changelog-page.html'), store, changelog, toAddress);
  for (const [name, text] of Object.entries(changes ?? {})) write(name, text);
  const template = readOwn('page.html').replace('docs/scalar.js', `docs/${bundle.name}`);
  const page = renderPage(template, document, { ...prepared, store, guides });
  write('index.md', page.markdown);
  // Last, because its presence marks the folder as complete.
  write('page.html', page.html);
  return OUTPUT;
}

/** The names in texts. The address is an example, which pages replace by that of the service. */
function describeStore({ name, title, description, keyPrefix, mainPath }, client) {
  return {
    ...{ name, title, description, keyPrefix, mainPath, client },
    variable: name.toUpperCase().replaceAll('-', '_'),
    host: `${name.split('-').at(-1)}.example.org`,
  };
}

/** The function that says in a text what it says of my-store of this store, as the kind of file takes it. */
function createRenaming({ name, title, keyPrefix, variable, host, client }) {
  const names = {
    'my-store-client': client?.name ?? `${name}-client`,
    ...{ 'my-store': name, MY_STORE: variable, ms_: keyPrefix },
  };
  return (text, path) =>
    text.replaceAll(NAMES, (match, index) => {
      if (/^\\?\.example/.test(text.slice(index + match.length))) return host.split('.', 1)[0];
      if (!match.startsWith('My Store')) return names[match];
      const shown = match.endsWith('Service') ? title : title.replace(/ Service$/, '');
      return path.endsWith('.css') ? JSON.stringify(shown).slice(1, -1) : escapeHtml(shown);
    });
}

/** Undefined where there is no such file */
function readJson(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
}

/** The guides, with the client's immutable address, which the sources cannot know. */
function readGuides(root, { variable, client }) {
  const folder = join(root, GUIDES);
  if (!existsSync(folder)) return [];
  const lookUp = `$(curl -so /dev/null -w '%{redirect_url}' "$${variable}_URL/client.tgz")`;
  const address = () => `$${variable}_URL/${client.file}`;
  return readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }))
    .map(({ name, text }) => ({ name, text: client ? text.replaceAll(lookUp, address) : text }));
}

function readBundle() {
  const plugin = dirname(createRequire(import.meta.url).resolve('@scalar/fastify-api-reference'));
  const { version } = readJson(join(plugin, '../package.json'));
  return { name: `scalar-${version}.js`, content: readFileSync(join(plugin, 'js/standalone.js')) };
}

/** Leaves out of a page what leads to guides that there are not. */
function adaptToGuides(html, { guides, sections, changelog }) {
  const hasSection = (address) => sections.some((section) => section.address === address);
  let adapted = html
    .replaceAll(GUIDE_LINK, (line, address) => (hasSection(address) ? line : ''))
    .replace('data-sections=""', () => `data-sections="${KEY_SECTIONS.filter(hasSection).join(' ')}"`);
  if (changelog === undefined) adapted = adapted.replace(FEED_LINK, '');
  if (guides.length > 0) return adapted;
  for (const [text, other] of Object.entries(WITHOUT_GUIDES)) adapted = adapted.replaceAll(text, other);
  return adapted;
}

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

interface Row {
  readonly library: string;
  /** What the second column has in code, such as `_def` */
  readonly names: readonly string[];
  readonly files: readonly string[];
  readonly test: string;
}

const HEADINGS = '| library | what | used in | fails first |\n|---|---|---|---|\n';
const [, table = ''] = readFileSync('docs/maintaining.md', 'utf8').split(HEADINGS);
const rows = (/^(?:\|.*\n)+/.exec(table)?.[0] ?? '')
  .trim()
  .split('\n')
  .map((line): Row => {
    const [, library = '', what = '', files = '', failing = ''] = line.split('|').map((cell) => cell.trim());
    const names = [...what.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    return { library, names, files: files.split(', '), test: failing };
  });

const libraries = readdirSync('packages').filter((name) => name !== 'prisma-dev-stub');

test('every private member of a library that the documents name is used where they say, and has its test', () => {
  expect(rows.length).toBeGreaterThan(5);
  for (const { names, files, test: failing } of rows) {
    const sources = files.map((file) => readFileSync(file, 'utf8'));
    for (const source of sources) expect(source).toContain(names[0]);
    for (const name of names) expect(sources.join('\n'), `${name} in ${files}`).toContain(name);
    expect(failing).toMatch(/^\S+\.test\.ts$|^`npm run tsc -- -p test`$/);
    if (!failing.startsWith('`')) expect(existsSync(failing), failing).toBe(true);
  }
});

test('every test that the documents name as evidence exists', () => {
  const folders = ['test', ...libraries.map((name) => join('packages', name, 'test'))].filter(existsSync);
  const tests = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  );
  const documented = readFileSync('docs/tested.md', 'utf8');
  const [, evidence = ''] = documented.split('| `npx vitest run …` |\n|---|---|---|\n');
  const lines = (/^(?:\|.*\n)+/.exec(evidence)?.[0] ?? '').trim().split('\n');
  const named = lines.flatMap((line) => {
    const [, before = '', inner, after = ''] = /\| ([^|{]+?)(?:\{(.+)\}(.*))? \|$/.exec(line) ?? [];
    return inner === undefined ? [before] : inner.split(',').map((name) => `${before}${name}${after}`);
  });
  expect(named.length).toBeGreaterThan(15);
  const unknown = named.filter((name) => name !== 'by hand' && !tests.some((path) => path.includes(name)));
  expect(unknown).toEqual([]);
});

/** A member of messages, by the Model Context Protocol */
const OF_PROTOCOL = / _meta$/;

test('no source uses a private member that the documents do not name', () => {
  const known = new Set(
    rows.flatMap(({ names, files }) => files.flatMap((file) => names.map((name) => `${file} ${name}`))),
  );
  const sources = ['src', ...libraries.map((name) => `packages/${name}/src`)]
    .filter(existsSync)
    .flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name))))
    .filter((path) => path.endsWith('.ts') && !path.includes('/generated/'));
  expect(sources.length).toBeGreaterThan(50);
  const found = sources.flatMap((path) =>
    [
      ...readFileSync(path, 'utf8').matchAll(/(?:\.|readonly |^ {2}|\{ )(_[a-zA-Z]\w*)\b(?=\??[.:(,;) ])/gm),
    ].map(([, name]) => `${path} ${name}`),
  );
  expect(found.length).toBeGreaterThan(5);
  expect(found.filter((use) => !known.has(use) && !OF_PROTOCOL.test(use))).toEqual([]);
});

const PAGE = 'packages/reference-page/src';

test("every class of Scalar's that the reference page builds on is in the installed Scalar", () => {
  const plugin = dirname(createRequire(import.meta.url).resolve('@scalar/fastify-api-reference'));
  const bundle = readFileSync(join(plugin, 'js/standalone.js'), 'utf8');
  const classes = rows.filter(({ library }) => library === 'Scalar').flatMap(({ names }) => names);
  expect(classes.filter((name) => !new RegExp(`[^\\w-]${name}[^\\w-]`).test(bundle))).toEqual([]);
  const read = (names: readonly string[]) => names.map((name) => readFileSync(name, 'utf8')).join('\n');
  const listFiles = (pattern: RegExp) =>
    readdirSync(PAGE)
      .filter((name) => pattern.test(name))
      .map((name) => join(PAGE, name));
  const makers = read([...listFiles(/\.(?:js|html)$/), 'packages/reference-page/src/build/guides.js']);
  const own = [...makers.matchAll(/\bclass(?:Name)?(?: ?=|:) ?["']([\w-]+)["']/g)].map(([, name]) => name);
  const styles = read(listFiles(/\.css$/)).replaceAll(/\/\*[\s\S]*?\*\/|"[^"]*"/g, '');
  const used = new Set([...styles.matchAll(/\.([a-z][\w-]*)/g)].map(([, name]) => name));
  expect(used.size).toBeGreaterThan(classes.length / 2);
  expect([...used].filter((name) => !classes.includes(String(name)) && !own.includes(name))).toEqual([]);
});

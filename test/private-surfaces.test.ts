import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

interface Row {
  /** What the second column has in code, such as `_def` */
  readonly names: readonly string[];
  readonly files: readonly string[];
  readonly test: string;
}

const HEADINGS = '| library | what | used in | fails first |\n|---|---|---|---|\n';
const [, table = ''] = readFileSync('docs/tested.md', 'utf8').split(HEADINGS);
const rows = table
  .trim()
  .split('\n')
  .map((line): Row => {
    const [, , what = '', files = '', failing = ''] = line.split('|').map((cell) => cell.trim());
    const names = [...what.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    return { names, files: files.split(', '), test: failing };
  });

test('every private member of a library that the documents name is used where they say, and has its test', () => {
  expect(rows.length).toBeGreaterThan(5);
  for (const { names, files, test: failing } of rows) {
    const sources = files.map((file) => readFileSync(file, 'utf8'));
    for (const source of sources) expect(source).toContain(names[0]);
    for (const name of names) expect(sources.join('\n'), `${name} in ${files}`).toContain(name);
    const [, path] = /vitest run (\S+\.test\.ts)/.exec(failing) ?? [];
    expect(failing).toMatch(/^`(?:npx vitest run|npm run tsc)|^any test/);
    if (path !== undefined) expect(existsSync(path), path).toBe(true);
  }
});

/** A member of messages, by the Model Context Protocol */
const OF_PROTOCOL = / _meta$/;

test('no source uses a private member that the documents do not name', () => {
  const known = new Set(
    rows.flatMap(({ names, files }) => files.flatMap((file) => names.map((name) => `${file} ${name}`))),
  );
  const sources = ['src', 'packages/client/src', 'packages/embedded-postgres/src']
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

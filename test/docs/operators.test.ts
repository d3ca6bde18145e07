import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { definition } from '#operations-under-test';
import { listHeadings, listLinks } from '../../packages/platform/test/support/markdown.js';

// The documents for operators that the platform brings to any store, and the messages that name one.

const FOLDER = 'packages/platform/docs';
const texts = readdirSync(FOLDER).map((name) => ({ name, text: readFileSync(join(FOLDER, name), 'utf8') }));
const listAnchors = (text: string) => listHeadings(text).map(({ anchor }) => anchor);

test('they say what those of this repository say, and nothing of its store', async () => {
  const { deriveOperatorsDocs } = await import(pathToFileURL('scripts/operators-docs.js').href);
  const written = Object.fromEntries(texts.map(({ name, text }) => [`${FOLDER}/${name}`, text]));
  expect(written, 'write them with: npm run docs:update').toEqual(deriveOperatorsDocs());
  const { identity, plans, scopes, errors } = definition;
  const { name, title, keyPrefix, metricsPrefix, grants } = identity;
  const prefixes = [metricsPrefix, `${keyPrefix}test_`, `${keyPrefix}live_`];
  const words = [
    name,
    title,
    'animal',
    'pet',
    ...prefixes,
    ...scopes,
    ...Object.keys({ ...grants, ...errors }),
  ];
  const listed = Object.keys(plans).map((plan) => `--plan ${plan}`);
  for (const { name: document, text } of texts) {
    // The packages have the name of this store, and so have attributes of spans, whatever store sends them.
    const own = text
      .replaceAll(/@animal-store\/|animal_store\.\w+/g, '')
      .replaceAll(/order(?= is |:)|in order\b/g, '');
    const said = words.concat(listed).filter((word) => new RegExp(`(?<!\\w)${word}`, 'i').test(own));
    expect(said, document).toEqual([]);
  }
});

test('they link to nothing but what is packed with them', () => {
  const { files } = JSON.parse(readFileSync('packages/platform/package.json', 'utf8'));
  expect(files).toEqual(expect.arrayContaining(['docs', 'src']));
  const links = texts.flatMap(({ text }) => listLinks(text)).filter((target) => !/^[a-z]+:/.test(target));
  expect(links.length).toBeGreaterThan(50);
  expect(links.filter((target) => !/^(?:[\w-]+\.md)?(?:#|$)|^\.\.\/src\//.test(target))).toEqual([]);
});

test('a message of the platform names a document that the package has, and a heading of it', () => {
  const source = 'packages/platform/src';
  const named = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => {
      const code = readFileSync(join(source, path), 'utf8').replaceAll(/\/\*.*?\*\/|^\s*\/\/[^\n]*/gms, '');
      return [...code.matchAll(/docs\/([\w-]+\.md)(?:#([\w-]+))?(.{0,30})/g)];
    });
  expect(named.length).toBeGreaterThan(3);
  for (const [match, name, anchor, rest] of named) {
    expect(rest, match).toMatch(/^ of @animal-store\/platform\b/);
    const text = texts.find((each) => each.name === name)?.text ?? '';
    expect(listAnchors(text), match).toContain(anchor ?? listAnchors(text)[0]);
  }
});

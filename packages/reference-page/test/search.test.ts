import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { errorTable } from '../../../src/platform/errors/error-table.js';
import { GUIDES_FOLDER, listGuides } from '../../../test/guides/code-blocks.js';
import { create } from '../../../test/support/operations-under-test.js';

interface Section {
  readonly title: string;
  readonly place: string;
  readonly address: string;
  readonly text: string;
}

const load = (path: string) => import(pathToFileURL(path).href);
const { prepareGuides } = await load('scripts/guides.js');
const { searchSections, toSections } = await load('packages/reference-page/src/search.js');

const guides = await Promise.all(
  listGuides().map(async (name) => ({ name, text: await readFile(join(GUIDES_FOLDER, name), 'utf8') })),
);
const document = JSON.parse(await readFile('docs/openapi.json', 'utf8'));
const { summary } = document.paths[create.documentPath].post;
const sections: readonly Section[] = [...prepareGuides(guides).sections, ...toSections(document)];

function search(query: string): string[] {
  return searchSections(sections, query).map(({ place, title }: Section) => `${place}: ${title}`);
}

test.each([
  ['429', 'Rate limits: When the limit is used up'],
  ['insufficient_scope', 'Errors: A missing scope'],
  ['Retry-After', 'Rate limits: When the limit is used up'],
  ['Sunset', 'Deprecation and versions: How an operation is removed'],
  ['idempotency', 'Safe retries: The Idempotency-Key header'],
  ['X-Request-Id', 'Errors: Reporting an error'],
  ['ban', 'Rate limits: Bans'],
  ['unknown query parameter', 'Pagination: Pagination'],
  [create.name, `${create.name}, POST ${create.documentPath}: ${summary}`],
])('a search for %s leads to %s first', (query, first) => {
  expect(search(query)[0]).toBe(first);
});

test('every error code and every header of the document is found, whatever its case', () => {
  const headers = Object.keys(document.components.headers).filter((name) => name.includes('-'));
  expect(headers.length).toBeGreaterThan(5);
  for (const word of [...headers, ...Object.keys(errorTable)]) {
    const found = search(word);
    expect([word, found.length > 0, search(word.toUpperCase())]).toEqual([word, true, found]);
  }
});

test('all words have to be in a section, and a query without words finds nothing', () => {
  expect(search('retry idempotency').length).toBeGreaterThan(0);
  expect(search('retry zyzzyva')).toEqual([]);
  expect(search('  ')).toEqual([]);
});

test('what a section is searched for has no links and no fences of Markdown', () => {
  for (const { title, text } of sections) expect([title, text.match(/\]\(|^```/m)]).toEqual([title, null]);
});

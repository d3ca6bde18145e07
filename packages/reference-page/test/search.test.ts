import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { GUIDES_FOLDER, listGuides } from '../../../test/guides/code-blocks.js';
import { create } from '../../../test/support/operations-under-test.js';
import { errorTable } from '../../platform/test/support/error-table.js';

interface Section {
  readonly title: string;
  readonly place: string;
  readonly address: string;
  readonly text: string;
}

const load = (path: string) => import(pathToFileURL(path).href);
const { prepareGuides } = await load('packages/reference-page/src/build/guides.js');
const { listBeginnings, searchSections, toSections } = await load('packages/reference-page/src/search.js');
const { KEY_PAGE, listIntroduction } = await load('packages/reference-page/src/introduction.js');

const guides = await Promise.all(
  listGuides().map(async (name) => ({ name, text: await readFile(join(GUIDES_FOLDER, name), 'utf8') })),
);
const synonyms: Readonly<Record<string, string>> = JSON.parse(
  await readFile(join(GUIDES_FOLDER, 'synonyms.json'), 'utf8'),
);
const document = JSON.parse(await readFile('docs/openapi.json', 'utf8'));
const { summary } = document.paths[create.documentPath].post;
const sections: readonly Section[] = [...prepareGuides(guides).sections, ...toSections(document)];
/** What the search of the page looks through */
const page: readonly Section[] = [
  ...listIntroduction(document.info.description, 'Begin.', 'the operator', true),
  KEY_PAGE,
  ...sections,
];

const NOT_OFFERED = 'A first call: Not offered: do this instead';
const LANGUAGES = 'A first call: In your language';
const DOCUMENT = 'Introduction: What holds for all operations';
const CREATE = `${create.name}, POST ${create.documentPath}: ${summary}`;

function search(query: string, among = sections): string[] {
  return searchSections(among, query, synonyms).map(({ place, title }: Section) => `${place}: ${title}`);
}

test.each([
  ['429', 'Rate limits: When the limit is used up'],
  ['insufficient_scope', 'Errors: A missing scope'],
  ['Retry-After', 'Rate limits: When the limit is used up'],
  ['Sunset', 'Deprecation and versions: How an operation is removed'],
  ['idempotency', 'Safe retries: The Idempotency-Key header'],
  ['X-Request-Id', 'Errors: Reporting an error'],
  ['ban', 'Rate limits: Bans'],
  ['unknown query parameter', 'Pagination: What can go wrong'],
  [create.name, CREATE],
])('a search for %s leads to %s first', (query, first) => {
  expect(search(query)[0]).toBe(first);
});

test.each([
  ['bulk', NOT_OFFERED],
  ['batch', 'TypeScript and tRPC: Batches'],
  ['import', 'A long import: A long import'],
  ['webhook', 'Keep a copy up to date: Keep a copy up to date'],
  ['filter', 'Pagination: Filters'],
  ['sort', 'Pagination: Sorting, and the newest first'],
  ['newest', 'Pagination: Sorting, and the newest first'],
  ['latest', 'Pagination: Sorting, and the newest first'],
  ['delete', "A shop's day: Update or delete an animal"],
  ['update', "A shop's day: Update or delete an animal"],
  ['event', NOT_OFFERED],
])('%s, which people type, leads to %s, and what is not offered to what to do instead', (query, first) => {
  expect(search(query)[0]).toBe(first);
});

test.each([
  ['search by name', NOT_OFFERED],
  ['updated since', 'Keep a copy up to date: Keep a copy up to date'],
  ['pip install', LANGUAGES],
  ['buy', 'createOrder, POST /store/orders: Order an animal'],
  ['c#', LANGUAGES],
  ['cors', 'Getting and keeping a key: Getting a key'],
  ['download', DOCUMENT],
  ['graphql', DOCUMENT],
  ['login', 'Getting and keeping a key: Getting a key'],
  ['offset', 'Pagination: Pagination'],
  ['photo', CREATE],
  ['php', LANGUAGES],
  ['postman', DOCUMENT],
  ['price', 'Rate limits: Rate limits'],
  ['refund', 'updateOrder, PATCH /store/orders/{orderId}: Approve, deliver or cancel an order'],
  ['ruby', LANGUAGES],
  ['sandbox', 'Getting and keeping a key: Environments'],
])('%s, which no section has, leads to %s', (query, first) => {
  expect(search(query, page)[0]).toBe(first);
});

test('a dashboard leads to the page of a key', () => {
  expect(searchSections(page, 'dashboard', {})).toEqual([KEY_PAGE]);
});

test('a synonym is found by any case and beside other words, and leads somewhere', () => {
  expect(search('  PIP   Install requests ')).toEqual(search('pip install'));
  for (const [phrase, synonym] of Object.entries(synonyms)) {
    expect([phrase, search(phrase, page)]).toEqual([phrase, search(synonym, page)]);
    expect([phrase, search(synonym, page)]).not.toEqual([phrase, []]);
  }
});

test('an operation is found by the members of its response, at any depth', () => {
  const getKey = 'getKey, GET /key: Get your API key';
  for (const member of ['usage', 'resetsAt', 'bannedUntil', 'denied'])
    expect([member, search(member)]).toEqual([member, expect.arrayContaining([getKey])]);
  expect(search('petId createdAt')).toContain('listOrders, GET /store/orders: List orders');
});

test('a search that finds nothing leads to the beginning of every guide', () => {
  const beginnings: readonly Section[] = listBeginnings(page);
  expect(beginnings.map(({ title }) => title)).toEqual([
    'Introduction',
    ...guides.map(({ text }) => /^# (.+)$/m.exec(text)?.[1]),
  ]);
});

test('what is not offered names what people look for, and each row says what to do instead', () => {
  const words = ['bulk', 'batch', 'webhook', 'filter', 'sort', 'newest', 'delete', 'update'];
  for (const word of words)
    expect([word, search(word)]).toEqual([word, expect.arrayContaining([NOT_OFFERED])]);
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

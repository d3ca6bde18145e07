import { createCaller, rpcPath, toolCall } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { appRouter, definition, otherList } from '#operations-under-test';
import { addSampleData } from '../../src/database/open-database.js';
import { isPage, listOperations, type Operation } from '../../src/operations/list-operations.js';
import { createTestDatabase, PUBLIC_URL, startService, useService } from '../support/test-service.js';

// What holds for every list of the store, from the definitions alone: a list that is added is tested by itself.

type Input = Readonly<Record<string, unknown>>;
type Row = Input & { readonly id: number };

const LISTS = listOperations(appRouter).filter(isPage);
const named = LISTS.map((operation) => [operation.name, operation] as const);
/** Many more than the sample data has */
const MAX_ROWS = 1_000;
const PAGING = ['limit', 'cursor', 'order'];
/** What an input needs besides: of a nested list the id of its parent. */
const ownOf = ({ name }: Operation): Input => (name === otherList.name ? otherList.input : {});
const pathOf = ({ path }: Operation, own: Input) =>
  `/v1${path.replace(/\{(\w+)\}/g, (_, name) => String(own[name]))}`;
const filtersOf = ({ parameters }: Operation) =>
  parameters.filter((each) => each.in === 'query' && !PAGING.includes(each.name));

const { call, service } = useService();

beforeAll(async () => {
  await addSampleData(definition, service.database);
});

/** The next page of a list, by protocol: undefined at its end. */
type ReadPage = (list: Operation, input: Input) => Promise<{ rows: Row[]; cursor: number | undefined }>;
const PROTOCOLS: Readonly<Record<'rest' | 'trpc' | 'mcp', ReadPage>> = {
  async rest(list, input) {
    const query = new URLSearchParams(input as Record<string, string>).toString();
    const { body, headers } = await call(`${pathOf(list, ownOf(list))}?${query}`);
    const link = headers.get('link');
    if (link === null) return { rows: body, cursor: undefined };
    const next = new URL(/^<([^>]+)>; rel="next"$/.exec(link)?.[1] ?? '');
    expect(next.href.startsWith(`${PUBLIC_URL}${pathOf(list, ownOf(list))}?`)).toBe(true);
    const cursor = Number(next.searchParams.get('cursor'));
    expect(Object.fromEntries(next.searchParams)).toEqual(toTexts({ ...input, cursor }));
    return { rows: body, cursor };
  },
  async trpc(list, input) {
    const { body, headers } = await call(rpcPath(list.name, { ...ownOf(list), ...input }));
    const cursor = /^0=(\d+)$/.exec(headers.get('x-next-cursor') ?? '')?.[1];
    return { rows: body.result.data, cursor: cursor === undefined ? undefined : Number(cursor) };
  },
  async mcp(list, input) {
    const { body } = await call('/mcp', toolCall(list.name, { ...ownOf(list), ...input }));
    const { items, nextCursor } = body.result.structuredContent;
    return { rows: items, cursor: nextCursor ?? undefined };
  },
};
const toTexts = (input: Input) =>
  Object.fromEntries(Object.entries(input).map(([name, value]) => [name, String(value)]));

/** Follows the pages to the end. */
async function readAll(read: ReadPage, list: Operation, input: Input): Promise<Row[]> {
  const all: Row[] = [];
  for (let cursor = input.cursor; ; ) {
    const page = await read(list, { ...input, ...(cursor !== undefined && { cursor }) });
    all.push(...page.rows);
    // A list without an end fails here.
    expect(all.length).toBeLessThan(MAX_ROWS);
    if (page.cursor === undefined) return all;
    expect([page.rows.length, page.cursor]).toEqual([Number(input.limit), page.rows.at(-1)?.id]);
    cursor = page.cursor;
  }
}

/** No filter, each alone and all together, with values that rows have. */
function* filtersIn(list: Operation, rows: readonly Row[]): Iterable<Input> {
  const names = filtersOf(list).map(({ name }) => name);
  const pick = (row: Row, own: readonly string[]) => Object.fromEntries(own.map((name) => [name, row[name]]));
  yield {};
  for (const own of [...names.map((name) => [name]), names])
    for (const row of [rows.at(0), rows.at(-1), rows.at(rows.length / 2)])
      if (row && own.length > 0) yield pick(row, own);
}

test.each(
  named.flatMap(([name, list]) =>
    Object.entries(PROTOCOLS).map(([protocol, read]) => [name, protocol, list, read] as const),
  ),
)(
  '%s over %s: from either end and with each filter, following the pages visits each row once, in order',
  async (_name, _protocol, list, read) => {
    const all = await readAll(PROTOCOLS.rest, list, { limit: 100 });
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).toSorted((a, b) => a - b));
    expect(all.length).toBeGreaterThan(7);
    for (const filter of filtersIn(list, all)) {
      const wanted = all.filter((row) =>
        Object.entries(filter).every(([name, value]) => row[name] === value),
      );
      expect(wanted).not.toEqual([]);
      for (const limit of [3, wanted.length, 100])
        expect([filter, await readAll(read, list, { ...filter, limit })]).toEqual([filter, wanted]);
      expect(await readAll(read, list, { ...filter, order: 'newest', limit: 3 })).toEqual(
        wanted.toReversed(),
      );
    }
  },
);

test.each(named)(
  '%s is 20 rows by default, nothing beyond the last, and answers HEAD like GET',
  async (_name, list) => {
    const path = pathOf(list, ownOf(list));
    const all = await readAll(PROTOCOLS.rest, list, { limit: 100 });
    const { body, headers } = await call(path);
    expect(body).toEqual(all.slice(0, 20));
    expect((await call(`${path}?cursor=${2 ** 53 - 1}`)).body).toEqual([]);
    // A cursor that is no id, such as the 0 of openapi-react-query, is none.
    for (const cursor of [0, -1, 1 - 2 ** 53])
      for (const [order, rows] of [
        ['oldest', all],
        ['newest', all.toReversed()],
      ] as const)
        expect((await call(`${path}?cursor=${cursor}&order=${order}&limit=100`)).body).toEqual(rows);
    const head = await call(path, { method: 'HEAD' });
    expect([head.status, head.body]).toEqual([200, undefined]);
    for (const name of ['link', 'content-type', 'content-length'])
      expect(head.headers.get(name)).toBe(headers.get(name));
  },
);

test('every list of a store without rows is an empty array without a Link', async () => {
  const empty = await startService({ databaseUrl: await createTestDatabase() });
  for (const list of LISTS) {
    const { status, body, headers } = await createCaller(empty)(pathOf(list, ownOf(list)));
    expect([status, body, headers.get('link')]).toEqual([200, [], null]);
  }
  await empty.close();
});

const INVALID = {
  query: {
    integer: ['', 'x', '1.5', '1.0', '0x3', '1e1', ' 3', '9007199254740993', 'null'],
    string: ['', 'nothing of the kind', 'toString', 'null'],
  },
  json: { integer: ['3', null, 1.5, 2 ** 53, [], true], string: ['', null, 3, []] },
} as const;

test.each(named)(
  '%s refuses what a parameter cannot be, and one that is sent twice, by its name',
  async (_name, list) => {
    const path = pathOf(list, ownOf(list));
    for (const { name, type } of list.parameters.filter((each) => each.in === 'query')) {
      const kind = type === 'integer' ? 'integer' : 'string';
      const queries = INVALID.query[kind].map((value) => String(new URLSearchParams({ [name]: value })));
      for (const query of [...queries, `${name}=1&${name}=1`]) {
        const { status, body } = await call(`${path}?${query}`);
        expect([query, status, body.message]).toEqual([query, 400, expect.stringMatching(`^${name} `)]);
      }
      for (const value of INVALID.json[kind]) {
        const { status, body } = await call(rpcPath(list.name, { ...ownOf(list), [name]: value }));
        expect([name, value, status]).toEqual([name, value, 400]);
        expect(Object.keys(body.error.data.fields)).toEqual([name]);
      }
    }
  },
);

test.each(named)(
  '%s asked for 40 times at once, differently, answers each with its own',
  async (_name, list) => {
    const all = await readAll(PROTOCOLS.rest, list, { limit: 100 });
    const filters = [...filtersIn(list, all)];
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        PROTOCOLS.trpc(list, { ...filters[n % filters.length], limit: 100 }),
      ),
    );
    for (const [n, { rows }] of answers.entries()) {
      const wanted = Object.entries(filters[n % filters.length] as Input);
      expect(rows).toEqual(all.filter((row) => wanted.every(([name, value]) => row[name] === value)));
    }
  },
);

import { rpcPath } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { INSERT_OTHERS, insertSql, list, otherList } from '#operations-under-test';
import { useService } from '../support/test-service.js';

const FIELD = 'x-next-cursor';
const ITEMS = 4;

const { call, service } = useService();

beforeAll(async () => {
  const { pool } = service.database;
  await pool.query(`${insertSql("'Item ' || n")} FROM generate_series(1, ${ITEMS}) n`);
  await pool.query(INSERT_OTHERS);
});

test('a batch says it of each page by its place, and of nothing else', async () => {
  const names = [list.name, 'getKey', list.name, otherList.name, list.name].join(',');
  const input = JSON.stringify({ 0: { limit: 2 }, 2: { limit: 101 }, 3: { ...otherList.input, limit: 1 } });
  const path = `/trpc/${names}?batch=1&input=${encodeURIComponent(input)}`;
  const { headers, body } = await call(path);
  const lastId = (index: number) => body[index].result.data.at(-1).id;
  expect(headers.get(FIELD)).toBe(`0=${lastId(0)}, 3=${lastId(3)}, 4=null`);
  for (const other of [rpcPath('getKey'), rpcPath(list.name, { limit: 101 }), list.path])
    expect((await call(other)).headers.get(FIELD)).toBe(null);
  // A stream sends its head before it knows.
  const stream = await fetch(service.url + path, {
    headers: { authorization: `Bearer ${service.key}`, 'trpc-accept': 'application/jsonl' },
  });
  await stream.text();
  expect([stream.status, stream.headers.get(FIELD)]).toEqual([200, null]);
});

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { pet } from '../../src/pets/schema.js';
import {
  type Caller,
  createCaller,
  PUBLIC_URL,
  post,
  rpcPath,
  startService,
  type TestService,
} from '../support/test-service.js';

let service: TestService;
let call: Caller;

beforeAll(async () => {
  service = await startService();
  call = createCaller(service);
});
afterAll(() => service.close());
beforeEach(async () => {
  await service.database.pool.query('DELETE FROM pets');
});

async function addPets(count: number, status = 'available'): Promise<number[]> {
  const { rows } = await service.database.pool.query(
    `INSERT INTO pets (name, category_id, status) SELECT 'Pet ' || n, n, $2::pet_status FROM generate_series(1, $1::int) n RETURNING id`,
    [count, status],
  );
  return rows.map(({ id }) => Number(id));
}

test('createPet responds with 201, the pet with the next id, and its Location', async () => {
  const first = await call('/v1/pets', post({ name: 'Rex', categoryId: 7, status: 'pending' }));
  expect(first.status).toBe(201);
  expect(first.body).toMatchObject({ name: 'Rex', categoryId: 7, status: 'pending' });
  expect(pet.strict().parse(first.body)).toEqual(first.body);
  expect(first.headers.get('location')).toBe(`/store/v1/pets/${first.body.id}`);
  expect(first.headers.get('content-type')).toBe('application/json');
  const second = await call('/v1/pets', post({ name: 'Rex', categoryId: 7 }));
  expect(second.body.id).toBeGreaterThan(first.body.id);
});

test('a status left out is stored and returned as available', async () => {
  const { body } = await call('/v1/pets', post({ name: 'Rex', categoryId: 7 }));
  expect(body.status).toBe('available');
  expect((await call(`/v1/pets/${body.id}`)).body).toEqual(body);
});

test('unknown members of a body are ignored and never stored', async () => {
  const { status, body } = await call(
    '/v1/pets',
    post(
      '{"name":"Rex","categoryId":1,"id":99999,"__proto__":{"x":1},"constructor":3,"price":1.00000000000000000001}',
    ),
  );
  expect(status).toBe(201);
  expect(Object.keys(body)).toEqual(Object.keys(pet.shape));
  expect(body.id).not.toBe(99999);
});

test('a name is kept exactly as sent', async () => {
  for (const name of [
    '  padded\t',
    'Ünïcode ✨ 🐈‍⬛',
    '\u0301',
    '\ufeff',
    "Robert'); DROP TABLE pets;--",
    '\\u0041',
  ]) {
    const { status, body } = await call('/v1/pets', post({ name, categoryId: 1 }));
    expect([status, body.name]).toEqual([201, name]);
    expect((await call(`/v1/pets/${body.id}`)).body.name).toBe(name);
  }
});

test('both protocols return the same pet for the same id', async () => {
  const [id] = await addPets(1);
  const rest = await call(`/v1/pets/${id}`);
  const rpc = await call(rpcPath('getPet', { petId: id }));
  expect(rest.status).toBe(200);
  expect(rpc.body).toEqual({ result: { data: rest.body } });
});

test('createPet over tRPC stores the same pet as over REST', async () => {
  const { status, body } = await call('/trpc/createPet', post({ name: 'Tom', categoryId: 2 }));
  expect(status).toBe(200);
  const { data } = body.result;
  expect(data).toMatchObject({ name: 'Tom', categoryId: 2, status: 'available' });
  expect((await call(`/v1/pets/${data.id}`)).body).toEqual(data);
});

test('getPet over REST is a 404 for every petId without an animal', async () => {
  const impossible = [
    '0',
    '-1',
    '999999999',
    'abc',
    '1.0',
    '0x10',
    '1e1',
    '%201',
    '9007199254740993',
    '1'.repeat(400),
  ];
  for (const petId of [
    ...impossible,
    '%zz',
    '%FF',
    '%00',
    '%2e%2e',
    '🐈',
    '{petId}',
    'null',
    'constructor',
  ]) {
    const { status, body } = await call(`/v1/pets/${petId}`);
    expect([petId, status, body.code, body.status]).toEqual([petId, 404, 'not_found', 404]);
  }
});

test('a petId is decimal digits only, even where another notation would name an animal', async () => {
  const [id = 0] = await addPets(1);
  for (const petId of [`${id}.0`, `${id}e0`, `+${id}`, `%20${id}`]) {
    expect([petId, (await call(`/v1/pets/${petId}`)).status]).toEqual([petId, 404]);
  }
});

test('a percent-encoded petId is decoded', async () => {
  const [id = 0] = await addPets(1);
  const encoded = [...String(id)].map((digit) => `%3${digit}`).join('');
  expect((await call(`/v1/pets/${encoded}`)).body.id).toBe(id);
});

test('listPets is a bare array by ascending id, of 20 pets by default', async () => {
  const ids = await addPets(25);
  const { status, body } = await call('/v1/pets');
  expect(status).toBe(200);
  expect(body.map(({ id }: { id: number }) => id)).toEqual(ids.slice(0, 20));
  expect((await call('/v1/pets?limit=100')).body).toHaveLength(25);
});

test('listPets of an empty store is an empty array without a Link', async () => {
  const { status, body, headers } = await call('/v1/pets');
  expect([status, body, headers.get('link')]).toEqual([200, [], null]);
});

test('following Link visits every pet once and ends at the last page', async () => {
  const ids = await addPets(23);
  await addPets(5, 'sold');
  const seen: number[] = [];
  let path: string | undefined = '/v1/pets?status=available&limit=5&tag=a%20b';
  while (path !== undefined) {
    const page = await call(path);
    seen.push(...page.body.map(({ id }: { id: number }) => id));
    const link: string | null = page.headers.get('link');
    const target = link === null ? undefined : /^<([^>]+)>; rel="next"$/.exec(link)?.[1];
    if (target !== undefined) {
      const { searchParams } = new URL(target);
      expect(target.startsWith(`${PUBLIC_URL}/v1/pets?`)).toBe(true);
      expect(searchParams.get('cursor')).toBe(String(seen.at(-1)));
      expect([searchParams.get('status'), searchParams.get('limit'), searchParams.get('tag')]).toEqual([
        'available',
        '5',
        'a b',
      ]);
      expect(searchParams.getAll('cursor')).toHaveLength(1);
    }
    path = target?.replace(PUBLIC_URL, '');
  }
  expect(seen).toEqual(ids);
});

test('a parameter whose name begins with a question mark is a different parameter', async () => {
  const ids = await addPets(2);
  const { body } = await call('/v1/pets??limit=1');
  expect(body.map(({ id }: { id: number }) => id)).toEqual(ids);
});

test('Link keeps every character of the other parameters', async () => {
  await addPets(2);
  const { headers } = await call('/v1/pets?limit=1&note=a?b%26c%23d&note=e');
  const [, target = ''] = /^<([^>]+)>/.exec(headers.get('link') ?? '') ?? [];
  expect(new URL(target).searchParams.getAll('note')).toEqual(['a?b&c#d', 'e']);
});

test('a page with exactly the remaining pets has no Link', async () => {
  await addPets(4);
  expect((await call('/v1/pets?limit=4')).headers.has('link')).toBe(false);
  expect((await call('/v1/pets?limit=3')).headers.has('link')).toBe(true);
});

test('Link starts with the public address, whatever Host and forwarded headers claim', async () => {
  await addPets(2);
  const { headers } = await call('/v1/pets?limit=1', {
    headers: {
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'ftp',
      forwarded: 'host=evil.example',
    },
  });
  expect(headers.get('link')).toMatch(
    /^<https:\/\/service\.example\/store\/v1\/pets\?limit=1&cursor=\d+>; rel="next"$/,
  );
});

test('the status filter lists only animals of that status', async () => {
  await addPets(2, 'sold');
  const pending = await addPets(3, 'pending');
  const { body } = await call('/v1/pets?status=pending');
  expect(body.map(({ id }: { id: number }) => id)).toEqual(pending);
});

test('with order=newest the newest come first, whatever the filter, and following Link visits each animal once', async () => {
  const ids = [...(await addPets(5)), ...(await addPets(3, 'sold')), ...(await addPets(4))];
  const status = (id: number) => (ids.indexOf(id) >= 5 && ids.indexOf(id) < 8 ? 'sold' : 'available');
  for (const filter of ['', '&status=available']) {
    const seen: number[] = [];
    for (let path: string | undefined = `/v1/pets?order=newest&limit=2${filter}`; path !== undefined; ) {
      const { body, headers } = await call(path);
      seen.push(...body.map(({ id }: { id: number }) => id));
      path = /^<https:\/\/service\.example\/store(\/v1\/pets\?order=newest&limit=2\S*)>; rel="next"$/.exec(
        headers.get('link') ?? '',
      )?.[1];
    }
    const wanted = ids.filter((id) => filter === '' || status(id) === 'available');
    expect(seen).toEqual(wanted.toReversed());
  }
});

test('a cursor may be any integer within the bounds', async () => {
  const ids = await addPets(3);
  expect((await call('/v1/pets?cursor=-9007199254740991')).body).toHaveLength(3);
  expect((await call('/v1/pets?cursor=9007199254740991')).body).toHaveLength(0);
  expect((await call(`/v1/pets?cursor=${ids[0]}`)).body).toHaveLength(2);
});

test('the page of one after the id before it has the animal, else the one with the next higher id, else none', async () => {
  const [first = 0, gone = 0, last = 0] = await addPets(3);
  await service.database.pool.query('DELETE FROM pets WHERE id = $1', [gone]);
  const found = async (id: number) => {
    const { body } = await call(`/v1/pets?cursor=${id - 1}&limit=1`);
    return body.map((pet: { id: number }) => pet.id);
  };
  expect(await found(first)).toEqual([first]);
  expect(await found(gone)).toEqual([last]);
  expect(await found(last)).toEqual([last]);
  expect(await found(last + 1)).toEqual([]);
});

test('HEAD responds like GET without a body', async () => {
  await addPets(2);
  const get = await call('/v1/pets?limit=1');
  const head = await call('/v1/pets?limit=1', { method: 'HEAD' });
  expect([head.status, head.body]).toEqual([200, undefined]);
  for (const name of ['link', 'content-type', 'content-length'])
    expect(head.headers.get(name)).toBe(get.headers.get(name));
  expect((await call('/trpc/listPets', { method: 'HEAD' })).status).toBe(200);
  expect((await call('/v1/pets', { method: 'HEAD', key: null })).status).toBe(401);
});

test('the highest int64 that JavaScript represents is stored and returned exactly', async () => {
  for (const categoryId of [Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 0]) {
    const { status, body } = await call('/v1/pets', post({ name: 'Edge', categoryId }));
    expect([status, body.categoryId]).toEqual([201, categoryId]);
  }
});

import { post } from '@animal-store/platform/testing';
import { beforeEach, expect, test } from 'vitest';
import { pet } from '../../src/pets/schema.js';
import { useService } from '../support/service.js';

const { call, service } = useService();
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

test('the highest int64 that JavaScript represents is stored and returned exactly', async () => {
  for (const categoryId of [Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 0]) {
    const { status, body } = await call('/v1/pets', post({ name: 'Edge', categoryId }));
    expect([status, body.categoryId]).toEqual([201, categoryId]);
  }
});

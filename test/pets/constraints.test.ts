import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { definition } from '#operations-under-test';
import { openDatabase } from '../../packages/platform/src/connections/client.js';
import type { PrismaClient } from '../../src/generated/client.js';
import type { Database } from '../../src/store.js';
import { createTestDatabase } from '../support/service.js';

let database: Database;
let prisma: PrismaClient;

beforeAll(async () => {
  database = openDatabase(await createTestDatabase(), () => {}, definition);
  prisma = await database.loadPrisma();
});
afterAll(() => database.close());

describe('Prisma Studio cannot store rows that the service cannot serve', () => {
  test.each([
    ['an id of its own', { id: 5n, name: 'Rex', categoryId: 1n }],
    ['an empty name', { name: '', categoryId: 1n }],
    ['a blank name', { name: '\t\u00a0\u2003\u3000\u0085', categoryId: 1n }],
    ['a name over 200 characters', { name: '🐈'.repeat(201), categoryId: 1n }],
    ['a category over the bound', { name: 'Rex', categoryId: 2n ** 53n }],
    ['a category under the bound', { name: 'Rex', categoryId: -(2n ** 53n) }],
  ])('a pet with %s', async (_name, data) => {
    await expect(prisma.pet.create({ data })).rejects.toThrow();
  });

  test('a pet with another status', async () => {
    await expect(
      database.pool.query(`INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'lost')`),
    ).rejects.toThrow();
  });
});

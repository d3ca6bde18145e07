import { and, asc, eq, gt, isNull, or, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { bigint, customType, integer, pgEnum, pgTable, text, timestamp, uuid } from 'drizzle-orm/pg-core';
import { Pool } from 'pg';
import { STATUSES } from './case.js';

/*
 * The tables of bench/hono.ts, and its queries that are one statement, with Drizzle.
 */

const petStatus = pgEnum('pet_status', STATUSES);
export const pets = pgTable('pets', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  name: text('name').notNull(),
  categoryId: bigint('category_id', { mode: 'number' }).notNull(),
  status: petStatus('status').notNull(),
});
const orderStatus = pgEnum('order_status', ['placed', 'approved', 'delivered', 'cancelled']);
export const orders = pgTable('orders', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  petId: bigint('pet_id', { mode: 'number' }).notNull(),
  status: orderStatus('status').notNull().default('placed'),
  createdAt: timestamp('created_at', { withTimezone: true }).notNull().defaultNow(),
});
const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });
const apiKeys = pgTable('api_keys', {
  id: uuid('id').primaryKey(),
  hash: bytea('hash').notNull(),
  perMinute: integer('per_minute').notNull(),
  perDay: integer('per_day').notNull(),
  expiresAt: timestamp('expires_at', { withTimezone: true }),
  revokedAt: timestamp('revoked_at', { withTimezone: true }),
});

export const db = drizzle({
  client: new Pool({
    connectionString: process.env.DATABASE_URL,
    max: 10,
    connectionTimeoutMillis: 10_000,
    query_timeout: 1_500,
  }),
});
const isAfterCursor = gt(pets.id, sql.placeholder('cursor'));
const page = () => db.select().from(pets).orderBy(asc(pets.id)).limit(sql.placeholder('rows')).$dynamic();
export const listPets = page().where(isAfterCursor).prepare('list');
export const listPetsByStatus = page()
  .where(and(eq(pets.status, sql.placeholder('status')), isAfterCursor))
  .prepare('list-by-status');
export const findPet = db
  .select()
  .from(pets)
  .where(eq(pets.id, sql.placeholder('id')))
  .prepare('get');
export const insertPet = db
  .insert(pets)
  .values({
    name: sql.placeholder('name'),
    categoryId: sql.placeholder('categoryId'),
    status: sql.placeholder('status'),
  })
  .returning()
  .prepare('create');
export const updatePet = db
  .update(pets)
  .set({ categoryId: sql`${sql.placeholder('categoryId')}` })
  .where(eq(pets.id, sql.placeholder('id')))
  .returning()
  .prepare('update');
export const findKey = db
  .select({ id: apiKeys.id, perMinute: apiKeys.perMinute, perDay: apiKeys.perDay })
  .from(apiKeys)
  .where(
    and(
      eq(apiKeys.hash, sql.placeholder('hash')),
      isNull(apiKeys.revokedAt),
      or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, sql`now()`)),
    ),
  )
  .prepare('key');

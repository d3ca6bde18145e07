import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Database } from '@animal-store/platform/connections';
import {
  answerPage,
  assignedId,
  date,
  INPUT_ERROR,
  instant,
  int64,
  nestedPageInput,
  pageOutput,
  type RequestContext,
  type Resource,
  text,
} from '@animal-store/platform/operations';
import {
  type CreateResult,
  createTransactions,
  type IdempotencyKey,
  type Locks,
} from '@animal-store/platform/tables';
import {
  type Caller,
  createCaller,
  createTemporaryFolder,
  post,
  rpcPath,
  runCommand,
  toolCall,
  untilServed,
} from '@animal-store/platform/testing';
import { PrismaPg } from '@prisma/adapter-pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { expectInvalidIdsRejected } from '../packages/platform/test/support/document-requests.js';
import { createChecker } from '../packages/platform/test/support/openapi-checker.js';
import { rotate } from '../packages/platform/test/support/rotate.js';
import { ApiError, createProcedure } from '../src/store.js';
import { findServers, startService, type TestService } from './support/service.js';

// Bookings that belong to a caller, and a list of them in another order: docs/recipes.md shows their code.

// --- schema.ts

const room = text(1, 20).meta({ description: 'The room' });
const startsAt = instant('When it starts');
const EXAMPLE = { id: 1, room: 'Attic', startsAt: '2026-01-31T09:30:00.000Z' };
const booking = z.object({ id: assignedId(), room, startsAt }).meta({ id: 'Booking', examples: [EXAMPLE] });
const newBooking = z
  .object({ room, startsAt }, { error: INPUT_ERROR })
  .meta({ id: 'NewBooking', examples: [{ room: EXAMPLE.room, startsAt: EXAMPLE.startsAt }] });
const bookingReference = z.object(
  { bookingId: int64().meta({ description: 'Identifier of the booking', examples: [EXAMPLE.id] }) },
  { error: INPUT_ERROR },
);
const bookingChange = bookingReference
  .extend({ startsAt })
  .meta({ id: 'BookingChange', examples: [{ startsAt: EXAMPLE.startsAt }] });
const day = date('The day in UTC').meta({ examples: ['2026-01-31'] });
const bookingsPage = nestedPageInput({ day }, {});
const bookingList = pageOutput(booking).meta({ id: 'Bookings', examples: [[EXAMPLE]] });

type Booking = z.output<typeof booking>;
type BookingChange = z.output<typeof bookingChange>;
type BookingsPage = z.output<typeof bookingsPage>;
type NewBooking = z.output<typeof newBooking>;

// --- prisma/schema.prisma

const MODEL = `
model Booking {
  id       BigInt   @id @default(autoincrement())
  owner    String
  room     String
  startsAt DateTime @map("starts_at") @db.Timestamptz(3)

  @@index([owner, id])
  @@index([owner, startsAt, id])
  @@map("bookings")
}`;

/** The part of Prisma's client for it. In a service, these types are generated. */
interface BookingRow {
  readonly id: bigint;
  readonly room: string;
  readonly startsAt: Date;
}
interface WithBookings {
  readonly booking: {
    create(query: object): Promise<BookingRow>;
    findFirst(query: object): Promise<BookingRow | null>;
    findMany(query: object): Promise<BookingRow[]>;
    updateManyAndReturn(query: object): Promise<BookingRow[]>;
    deleteMany(query: object): Promise<{ readonly count: number }>;
  };
}
interface BookingTransactions {
  once<Output>(
    key: IdempotencyKey | undefined,
    create: (transaction: WithBookings, locks: Locks) => Promise<Output>,
  ): Promise<CreateResult<Output>>;
}

// --- store.ts

const DAY_MS = 86_400_000;
const toBooking = ({ id, room, startsAt }: BookingRow): Booking => ({
  id: Number(id),
  room,
  startsAt: startsAt.toISOString(),
});

function createBookingStore(database: Database) {
  const loadPrisma = database.loadPrisma as unknown as () => Promise<WithBookings>;
  const transactions = createTransactions(database) as unknown as BookingTransactions;
  return {
    async get(owner: string, id: number) {
      const { booking } = await loadPrisma();
      const found = await booking.findFirst({ where: { id, owner } });
      return found ? toBooking(found) : undefined;
    },
    async move(owner: string, { bookingId, startsAt }: BookingChange) {
      const { booking } = await loadPrisma();
      const where = { id: bookingId, owner };
      const [changed] = await booking.updateManyAndReturn({ where, data: { startsAt } });
      return changed ? toBooking(changed) : undefined;
    },
    async cancel(owner: string, id: number) {
      const { booking } = await loadPrisma();
      return (await booking.deleteMany({ where: { id, owner } })).count > 0;
    },
    book: (owner: string, input: NewBooking, key?: IdempotencyKey) =>
      transactions.once<Booking>(key, async (transaction, { takeTurn }) => {
        await takeTurn('bookings');
        return toBooking(await transaction.booking.create({ data: { ...input, owner } }));
      }),
    async listDay(owner: string, { day, limit, cursor }: BookingsPage) {
      const { booking } = await loadPrisma();
      const from = new Date(`${day}T00:00:00Z`);
      const rows = await booking.findMany({
        where: { owner, startsAt: { gte: from, lt: new Date(from.getTime() + DAY_MS) } },
        orderBy: [{ startsAt: 'asc' }, { id: 'asc' }],
        ...(cursor !== undefined && { cursor: { id: cursor }, skip: 1 }),
        take: limit + 1,
      });
      return rows.map(toBooking);
    },
  };
}
type BookingStore = ReturnType<typeof createBookingStore>;

// --- procedures.ts

const ownerOf = ({ apiKey }: Pick<RequestContext, 'apiKey'>) => apiKey.owner ?? apiKey.id;

const procedure = createProcedure<{ readonly bookings: BookingStore }>();
const meta = { stability: 'beta', scope: 'any' } as const;
const getBooking = procedure
  .meta({ ...meta, openapi: { method: 'GET', path: '/bookings/{bookingId}', summary: 'Get a booking' } })
  .input(bookingReference)
  .output(booking)
  .query(async ({ ctx, input }) => {
    const found = await ctx.bookings.get(ownerOf(ctx), input.bookingId);
    if (found === undefined) throw new ApiError('not_found');
    return found;
  });
const moveBooking = procedure
  .meta({ ...meta, openapi: { method: 'PATCH', path: '/bookings/{bookingId}', summary: 'Move a booking' } })
  .input(bookingChange)
  .output(booking)
  .mutation(async ({ ctx, input }) => {
    const moved = await ctx.bookings.move(ownerOf(ctx), input);
    if (moved === undefined) throw new ApiError('not_found');
    return moved;
  });
const cancelBooking = procedure
  .meta({
    ...meta,
    openapi: { method: 'DELETE', path: '/bookings/{bookingId}', summary: 'Cancel a booking' },
  })
  .input(bookingReference)
  .output(z.void())
  .mutation(async ({ ctx, input }) => {
    if (!(await ctx.bookings.cancel(ownerOf(ctx), input.bookingId))) throw new ApiError('not_found');
  });
const bookRoom = procedure
  .meta({
    ...meta,
    openapi: { method: 'POST', path: '/bookings', summary: 'Book a room' },
    success: { status: 201, location: ({ id }: Booking) => `/bookings/${id}` },
    idempotent: true,
  })
  .input(newBooking)
  .output(booking)
  .mutation(({ ctx, input }) => ctx.once((key) => ctx.bookings.book(ownerOf(ctx), input, key)));
const listBookings = procedure
  .meta({ ...meta, openapi: { method: 'GET', path: '/bookings', summary: 'List the bookings of a day' } })
  .input(bookingsPage)
  .output(bookingList)
  .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.bookings.listDay(ownerOf(ctx), input)));

const bookings: Resource<BookingStore> = {
  name: 'bookings',
  description: 'Bookings of rooms',
  createStore: (database) => createBookingStore({ ...database, loadPrisma: () => openClient(database) }),
  procedures: { getBooking, moveBooking, cancelBooking, bookRoom, listBookings },
};

// --- test/bookings/bookings.test.ts

const checker = createChecker([bookings]);
let service: TestService;
let call: Caller;
/** Of two keys of one owner, one of another, and one that has none */
let keys: Readonly<Record<'ann' | 'annToo' | 'ben' | 'alone', string>>;
/** Prisma's client with the model, which this file generates */
let openClient: (database: Database) => ReturnType<Database['loadPrisma']>;

beforeAll(async () => {
  const folder = await createTemporaryFolder();
  symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
  const [generator = ''] = /^generator.*?^}/ms.exec(readFileSync('prisma/schema.prisma', 'utf8')) ?? [];
  const output = generator.replace(/output .*/, 'output = "./generated"');
  const schema = join(folder, 'schema.prisma');
  writeFileSync(schema, `${output}\ndatasource db {\n  provider = "postgresql"\n}\n${MODEL}\n`);
  const generate = runCommand('node_modules/.bin/prisma', ['generate', '--schema', schema], {});
  expect(await generate.ended, generate.output()).toBe(0);
  const { PrismaClient } = await import(pathToFileURL(join(folder, 'generated/client.ts')).href);
  let client: ReturnType<Database['loadPrisma']> | undefined;
  openClient = ({ pool, schema }) => {
    client ??= Promise.resolve(new PrismaClient({ adapter: new PrismaPg(pool, { schema }) }));
    return client;
  };

  service = await startService({ resources: [bookings] });
  const send = createCaller(service);
  call = (path, init) => untilServed(() => send(path, init));
  // You may be about to make a src/bookings/ of it.
  await service.database.pool.query(`
    DROP TABLE IF EXISTS bookings CASCADE;
    CREATE TABLE bookings (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner text NOT NULL, room text NOT NULL,
      starts_at timestamptz(3) NOT NULL);
    CREATE INDEX ON bookings (owner, id);
    CREATE INDEX ON bookings (owner, starts_at, id);
    INSERT INTO insert_turns VALUES ('bookings') ON CONFLICT DO NOTHING;
    GRANT SELECT, INSERT, UPDATE, DELETE ON bookings TO ${findServers().serviceRole.name}`);
  const issue = async (name: string, owner?: string) =>
    (await service.keys.create({ name, plan: 'business', owner, expiresAt: null })).key;
  keys = {
    ann: await issue('ann', 'Ann'),
    annToo: await issue('ann, too', 'Ann'),
    ben: await issue('ben', 'Ben'),
    alone: await issue('alone'),
  };
  return () => rmSync(folder, { recursive: true });
});
afterAll(() => service.close());

const book = async (key: string, startsAt: string, headers = {}) => {
  const response = await call('/v1/bookings', { ...post({ room: 'Attic', startsAt }, headers), key });
  checker.expectDescribed('bookRoom', response);
  return response;
};
const listDay = async (key: string, query: string) => {
  const response = await call(`/v1/bookings?${query}`, { key });
  checker.expectDescribed('listBookings', response);
  return response;
};
const move = (startsAt: string) => ({ ...post({ startsAt }), method: 'PATCH' });

test('a row is found, changed and deleted by the keys of its owner, and is a 404 for everybody else', async () => {
  const { body, status } = await book(keys.ann, '2026-03-01T10:00:00Z', { 'idempotency-key': 'one' });
  expect([status, body]).toEqual([
    201,
    { id: expect.any(Number), room: 'Attic', startsAt: '2026-03-01T10:00:00.000Z' },
  ]);
  const again = await book(keys.ann, '2026-03-01T10:00:00Z', { 'idempotency-key': 'one' });
  expect([again.headers.get('idempotency-replayed'), again.body]).toEqual(['true', body]);
  const path = `/v1/bookings/${body.id}`;
  for (const key of [keys.ben, keys.alone]) {
    expect((await call(path, { key })).status).toBe(404);
    expect((await call(path, { ...move('2026-03-02T10:00:00Z'), key })).status).toBe(404);
    expect((await call(path, { method: 'DELETE', key })).status).toBe(404);
    expect((await listDay(key, 'day=2026-03-01')).body).toEqual([]);
    const rpc = await call(rpcPath('getBooking', { bookingId: body.id }), { key });
    expect(rpc.body.error.data.error.code).toBe('not_found');
    const tool = await call('/mcp', { ...toolCall('cancelBooking', { bookingId: body.id }), key });
    expect(tool.body.result.structuredContent.code).toBe('not_found');
  }
  expect((await call(path, { key: keys.annToo })).body).toEqual(body);
  const moved = await call(path, { ...move('2026-03-01T11:00:00Z'), key: keys.annToo });
  checker.expectDescribed('moveBooking', moved);
  expect(moved.body).toEqual({ ...body, startsAt: '2026-03-01T11:00:00.000Z' });
  expect((await call(path, { method: 'DELETE', key: keys.ann })).status).toBe(204);
  expect((await call(path, { key: keys.ann })).status).toBe(404);
});

test('what a client sends as the owner decides nothing', async () => {
  const init = post({ room: 'Attic', startsAt: '2026-03-03T10:00:00Z', owner: 'Ben' });
  const { body } = await call('/v1/bookings', { ...init, key: keys.ann });
  expect((await call(`/v1/bookings/${body.id}`, { key: keys.ben })).status).toBe(404);
  expect((await call(`/v1/bookings/${body.id}?owner=Ann`, { key: keys.ben })).status).toBe(404);
});

test('a key without an owner has rows of its own, also after its rotation', async () => {
  const { body } = await book(keys.alone, '2026-03-04T10:00:00Z');
  const { rows } = await service.database.pool.query("SELECT id FROM api_keys WHERE name = 'alone'");
  const rotated = await rotate(service.keys, rows[0].id);
  expect((await call(`/v1/bookings/${body.id}`, { key: rotated?.key ?? null })).body).toEqual(body);
});

test('the rows of a day come by their time, page by page, over all protocols', async () => {
  const times = ['12:00', '08:00', '23:59', '08:00', '00:00'].map((time) => `2026-04-02T${time}:00.000Z`);
  for (const time of ['2026-04-01T23:59:59.999Z', '2026-04-03T00:00:00Z', ...times])
    await book(keys.ann, time);
  await book(keys.ben, '2026-04-02T09:00:00Z');
  const read: Booking[] = [];
  for (let path: string | undefined = '/v1/bookings?day=2026-04-02&limit=2'; path !== undefined; ) {
    const page: Awaited<ReturnType<Caller>> = await call(path, { key: keys.annToo });
    checker.expectDescribed('listBookings', page);
    read.push(...page.body);
    path = /<[^>]*(\/v1\/[^>]*)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1];
  }
  expect(read.map(({ startsAt }) => startsAt)).toEqual(times.toSorted());
  const rpc = await call(rpcPath('listBookings', { day: '2026-04-02', limit: 9 }), { key: keys.ann });
  expect(rpc.body.result.data).toEqual(read);
  const tool = await call('/mcp', { ...toolCall('listBookings', { day: '2026-04-02' }), key: keys.ann });
  expect(tool.body.result.structuredContent).toEqual({ items: read, nextCursor: null });
  expect((await listDay(keys.ann, 'limit=2')).status).toBe(400);
  expect((await listDay(keys.ann, 'day=2026-02-30')).status).toBe(400);
  expect((await listDay(keys.ann, 'day=2026-04-02&cursor=999999')).body).toEqual([]);
  await expectInvalidIdsRejected(checker, call);
});

test('docs/recipes.md shows this code', () => {
  const lines = new Set(
    [
      import.meta.filename,
      'packages/platform/test/operations/worked-example.test.ts',
      'src/orders/store.ts',
    ].flatMap((path) =>
      readFileSync(path, 'utf8')
        .split('\n')
        .map((line) => line.trim()),
    ),
  );
  const blocks = [...readFileSync('docs/recipes.md', 'utf8').matchAll(/^```ts\n(.*?)^```/gms)];
  expect(blocks.length).toBeGreaterThan(3);
  for (const [, code = ''] of blocks)
    expect(
      code
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => !lines.has(line)),
    ).toEqual([]);
});

import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DatabaseOutage } from '../../src/connections/outage.js';
import { createInSchema } from '../../src/connections/schema-name.js';
import { claimSql } from '../../src/tables/claim-statement.js';
import { createClaimingInsert } from '../../src/tables/claims.js';
import type { IdempotencyKey } from '../../src/tables/idempotency.js';
import type { Insert } from '../../src/tables/inserts.js';
import { table } from '../../src/tables/table.js';
import { OPERATION_TIMEOUT_MS, withTimeout } from '../../src/timing/timeouts.js';
import { compactSql } from '../support/compact-sql.js';
import { hold, untilAnswered, untilWaiting } from '../support/hold.js';
import { startService, useService } from '../support/test-service.js';

interface Ticket {
  readonly id: number;
  readonly seatId: number;
  readonly holder: string;
  readonly note: string | null;
  readonly color: string;
}
type NewTicket = Pick<Ticket, 'seatId' | 'holder' | 'note'>;

const TYPES = { id: 'bigint', seatId: 'bigint', holder: 'text', note: 'text', color: 'text' } as const;
const tickets = table<Ticket, Omit<Ticket, 'id'>>('tickets', TYPES);
const sales = table<Ticket, Omit<Ticket, 'id'>>('sales', TYPES);
const CLAIM = {
  fields: ['seatId', 'holder', 'note'],
  table: 'seats',
  by: 'seatId',
  isFree: 'taken = 0',
  set: 'taken = taken + 1',
  refuse: ({ seatId }: NewTicket, isThere: boolean) =>
    new Error(`seat ${seatId} is ${isThere ? 'taken' : 'missing'}`),
} as const;

const SETUP = `
  CREATE TABLE seats (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, taken int NOT NULL DEFAULT 0);
  CREATE TABLE tickets (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, seat_id bigint NOT NULL REFERENCES seats,
    holder text NOT NULL CHECK (holder <> 'Refused'), note text, color text NOT NULL DEFAULT 'red');
  CREATE TABLE sales (LIKE tickets INCLUDING ALL);
  INSERT INTO insert_turns VALUES ('tickets'), ('sales');
  CREATE TABLE statements (rows int);
  CREATE FUNCTION count_statement() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO statements SELECT count(*) FROM inserted; RETURN NULL; END';
  CREATE TRIGGER count_statement AFTER INSERT ON tickets REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION count_statement();
  GRANT ALL ON seats, tickets, sales, statements TO PUBLIC`;

let book: Insert<NewTicket, Ticket>;
/** The same of another process */
let bookElsewhere: typeof book;

const { service } = useService();

beforeAll(async () => {
  await service.database.pool.query(SETUP);
  const other = await startService({ databaseUrl: service.databaseUrl });
  afterAll(() => other.close());
  [book, bookElsewhere] = [service, other].map(({ serviceDatabase }) =>
    createClaimingInsert<Ticket, NewTicket>(serviceDatabase, tickets, CLAIM),
  ) as [typeof book, typeof book];
});

const query = async (sql: string, ...values: unknown[]) =>
  (await service.database.pool.query(sql, values)).rows;
async function addSeats(count: number): Promise<number[]> {
  const rows = await query('INSERT INTO seats SELECT FROM generate_series(1, $1) RETURNING id::int', count);
  return rows.map(({ id }) => id);
}
const addSeat = async () => (await addSeats(1))[0] as number;
const toTicket = (seatId: number, holder = 'Ann'): NewTicket => ({ seatId, holder, note: null });
const apiKeyId = randomUUID();
const toKey = (value: string = randomUUID(), bodyHash = randomBytes(32)): IdempotencyKey => ({
  apiKeyId,
  value,
  operation: 'bookSeat',
  batchIndex: 0,
  bodyHash,
});
/** What is stored of a seat: the number of times that it was taken, and who holds tickets for it */
const stored = async (seatId: number) => {
  const [seat] = await query('SELECT taken FROM seats WHERE id = $1', seatId);
  const holders = await query('SELECT holder FROM tickets WHERE seat_id = $1 ORDER BY id', seatId);
  return [seat?.taken, ...holders.map(({ holder }) => holder)];
};
const settle = async (bookings: readonly Promise<unknown>[]) =>
  (await Promise.allSettled(bookings)).map((each) =>
    each.status === 'fulfilled' ? 'booked' : each.reason.message,
  );
test('a row is inserted with the fields that are given and defaults for the others, and its claim is stored with it', async () => {
  const seatId = await addSeat();
  const { output, isReplay } = await book({ seatId, holder: 'Ann', note: 'window' });
  expect(output).toEqual({
    id: expect.any(Number),
    seatId,
    holder: 'Ann',
    note: 'window',
    color: 'red',
  });
  expect(isReplay).toBe(false);
  expect(await stored(seatId)).toEqual([1, 'Ann']);
});

test('of many at once for a few rows, each row goes to one; the others are told that it is taken or missing, and nothing of theirs is stored', async () => {
  const seats = await addSeats(5);
  const asked = [...seats, ...seats, ...seats, 999_999].flatMap((seatId) =>
    [book, bookElsewhere].map((each) => [each, seatId] as const),
  );
  const outcomes = await settle(
    asked.map(([each, seatId], n) =>
      untilAnswered(() => each(toTicket(seatId), n % 3 === 0 ? toKey() : undefined)),
    ),
  );
  for (const seatId of seats) {
    const ofSeat = outcomes.filter((_, n) => asked[n]?.[1] === seatId);
    expect(ofSeat.toSorted()).toEqual(['booked', ...Array(5).fill(`seat ${seatId} is taken`)]);
    expect(await stored(seatId)).toEqual([1, 'Ann']);
  }
  expect(outcomes.slice(-2)).toEqual(Array(2).fill('seat 999999 is missing'));
});

test('those that arrive while others are being stored share a statement', async () => {
  const seats = await addSeats(60);
  await query('DELETE FROM statements');
  const end = await hold(
    service.database.pool,
    "SELECT FROM insert_turns WHERE table_name = 'tickets' FOR UPDATE",
  );
  const first = book(toTicket(seats[0] as number));
  await untilWaiting(service.database.pool, 1);
  const others = seats.slice(1).map((seatId) => book(toTicket(seatId)));
  await end();
  await Promise.all([first, ...others]);
  const statements = await query('SELECT rows FROM statements ORDER BY rows');
  expect(statements.map(({ rows }) => rows)).toEqual([1, 59]);
});

test('a row that somebody has locked holds up only who wants it, and who waits for it gets it once it is free', async () => {
  const [locked = 0, ...free] = await addSeats(9);
  const end = await hold(service.database.pool, `SELECT FROM seats WHERE id = ${locked} FOR UPDATE`);
  const waiting = [undefined, toKey()].map((key) => settle([book(toTicket(locked), key)]));
  await Promise.all(
    free.map((seatId, n) => untilAnswered(() => book(toTicket(seatId), n % 2 === 0 ? undefined : toKey()))),
  );
  expect(await stored(locked)).toEqual([0]);
  await end();
  expect((await Promise.all(waiting)).flat().toSorted()).toEqual(['booked', `seat ${locked} is taken`]);
  expect(await stored(locked)).toEqual([1, 'Ann']);
});

test.each([
  ['is taken meanwhile', 'UPDATE seats SET taken = 1 WHERE id = $1', 'taken'],
  ['is deleted meanwhile', 'DELETE FROM seats WHERE id = $1', 'missing'],
])('who waits for a row that %s is told so', async (_, sql, state) => {
  const seatId = await addSeat();
  const end = await hold(service.database.pool, sql.replace('$1', `${seatId}`));
  const waiting = settle([book(toTicket(seatId)), book(toTicket(seatId), toKey())]);
  await untilWaiting(service.database.pool, 2);
  await end('COMMIT');
  expect(await waiting).toEqual(Array(2).fill(`seat ${seatId} is ${state}`));
});

test('a row that stays locked is an error of those who want it within the time of an operation, and nothing of theirs is stored later', async () => {
  const seatId = await addSeat();
  const end = await hold(service.database.pool, `SELECT FROM seats WHERE id = ${seatId} FOR UPDATE`);
  const limit = 2 * OPERATION_TIMEOUT_MS;
  const outcomes = await settle(Array.from({ length: 9 }, () => withTimeout(limit, book(toTicket(seatId)))));
  expect(outcomes.filter((each) => each === 'booked' || each.startsWith('No answer'))).toEqual([]);
  await end();
  expect(await stored(seatId)).toEqual([0]);
  expect(await settle([book(toTicket(seatId))])).toEqual(['booked']);
});

test('what may be taken several times, as what is in stock, is sold that often', async () => {
  const seatId = await addSeat();
  const buy = createClaimingInsert<Ticket, NewTicket>(service.serviceDatabase, sales, {
    ...CLAIM,
    isFree: 'taken < 7',
  });
  const outcomes = await settle(
    Array.from({ length: 20 }, (_, n) =>
      untilAnswered(() => buy(toTicket(seatId), n % 2 === 0 ? toKey() : undefined)),
    ),
  );
  expect(outcomes.toSorted()).toEqual([
    ...Array(7).fill('booked'),
    ...Array(13).fill(`seat ${seatId} is taken`),
  ]);
  const sold =
    'SELECT taken, (SELECT count(*)::int FROM sales WHERE seat_id = $1) AS count FROM seats WHERE id = $1';
  expect(await query(sold, seatId)).toEqual([{ taken: 7, count: 7 }]);
});

test('a row that PostgreSQL refuses is an error of whoever sent it alone', async () => {
  const seats = await addSeats(8);
  const outcomes = await settle(
    seats.map((seatId, n) => untilAnswered(() => book(toTicket(seatId, n === 5 ? 'Refused' : 'Ann')))),
  );
  expect(outcomes.map((each, n) => (n === 5 ? each.includes('tickets_holder_check') : each))).toEqual(
    outcomes.map((_, n) => (n === 5 ? true : 'booked')),
  );
  expect(await stored(seats[5] as number)).toEqual([0]);
});

test('an id that somebody has inserted already is an outage, also for whoever waits for a row, and the next attempt draws another', async () => {
  const [first, second] = await addSeats(2);
  const { output } = await untilAnswered(() => book(toTicket(first as number)));
  const end = await hold(service.database.pool, `SELECT FROM seats WHERE id = ${second} FOR UPDATE`);
  const waiting = book(toTicket(second as number));
  await untilWaiting(service.database.pool, 1);
  await query("SELECT setval(pg_get_serial_sequence('tickets', 'id'), $1, false)", output.id);
  const refused = expect(waiting).rejects.toThrow(DatabaseOutage);
  await end();
  await refused;
  expect(await settle([untilAnswered(() => book(toTicket(second as number)))])).toEqual(['booked']);
});

test('with a key, a repetition gets the first answer, also while the row is taken by it, and another body is refused', async () => {
  const seatId = await addSeat();
  const key = toKey();
  const bookings = Array.from({ length: 20 }, (_, n) =>
    untilAnswered(() => (n % 2 === 0 ? book : bookElsewhere)(toTicket(seatId), key)),
  );
  const answers = await Promise.all(bookings);
  expect(answers.filter(({ isReplay }) => !isReplay)).toHaveLength(1);
  expect(new Set(answers.map(({ output }) => JSON.stringify(output))).size).toBe(1);
  const other = book(toTicket(await addSeat()), toKey(key.value));
  await expect(other).rejects.toMatchObject({ code: 'idempotency_key_reused' });
  expect(await stored(seatId)).toEqual([1, 'Ann']);
});

test('with a key, a repetition that waited for the row while the first create got it gets the first answer', async () => {
  const seatId = await addSeat();
  const key = toKey();
  // The first create has stored the row and its key by the time that the second one has the row.
  const end = await hold(
    service.database.pool,
    `
    UPDATE seats SET taken = 1 WHERE id = ${seatId};
    INSERT INTO idempotent_creates (api_key_id, key, operation, batch_index, body_hash, response)
    VALUES ('${key.apiKeyId}', '${key.value}', 'bookSeat', 0, '\\x${Buffer.from(key.bodyHash).toString('hex')}', '{"id":1}')`,
  );
  const waiting = book(toTicket(seatId), key);
  await untilWaiting(service.database.pool, 1);
  await end('COMMIT');
  expect(await waiting).toEqual({ output: { id: 1 }, isReplay: true });
});

test('the SQL that is shown beside the statement is what the statement becomes', () => {
  const source = readFileSync('packages/platform/src/tables/claim-statement.ts', 'utf8');
  const [, shown = ''] = /that claim `seats`:\n \*\n((?: \* {5}.*\n)+)/.exec(source) ?? [];
  const becomes = claimSql<Ticket, NewTicket>(tickets, CLAIM, false, createInSchema('public'), {
    given: '…',
    lock: 'FOR UPDATE SKIP LOCKED',
  });
  expect(compactSql(shown.replaceAll(/^ \*/gm, ''))).toBe(compactSql(becomes));
});

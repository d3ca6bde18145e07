import { afterAll, beforeAll, expect, test } from 'vitest';
import { createChange } from '../../src/tables/changes.js';
import { table } from '../../src/tables/table.js';
import { OPERATION_TIMEOUT_MS, withTimeout } from '../../src/timing/timeouts.js';
import { hold, untilAnswered, untilWaiting } from '../support/hold.js';
import { startService, type TestService, useService } from '../support/test-service.js';

interface Room {
  readonly id: number;
  readonly name: string;
  readonly note: string | null;
  readonly beds: number;
}
const rooms = table<Room, Omit<Room, 'id'>>('rooms', {
  id: 'bigint',
  name: 'text',
  note: 'text',
  beds: 'integer',
});

const SETUP = `
  CREATE TABLE rooms (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL DEFAULT 'Attic', note text,
    beds int NOT NULL DEFAULT 2 CHECK (beds > 0));
  CREATE TABLE guests (room_id bigint NOT NULL REFERENCES rooms, name text);
  CREATE TABLE statements (rows int);
  CREATE FUNCTION count_statement() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO statements SELECT count(*) FROM changed; RETURN NULL; END';
  CREATE TRIGGER count_statement AFTER UPDATE ON rooms REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_statement();
  GRANT ALL ON rooms, guests, statements TO PUBLIC`;

type Change = ReturnType<typeof createRoomChange>;
let change: Change;
/** The same of another process */
let changeElsewhere: Change;

const createRoomChange = (database: TestService['database']) =>
  createChange(database, rooms, {
    fields: ['name', 'note', 'beds'],
    conditions: { expectedBeds: 'beds' },
    refusals: {
      beds_changed: 'CASE WHEN seen.beds <> given."expectedBeds" THEN seen.beds END',
      too_few_beds: `CASE WHEN given.beds < 2 AND seen.name = 'Hall' THEN seen.beds || ' beds are needed' END`,
      has_guests: `SELECT string_agg(name, ', ') FROM guests WHERE room_id = seen.id AND seen.beds > given.beds`,
    },
  });

const { service } = useService();

beforeAll(async () => {
  await service.database.pool.query(SETUP);
  const other = await startService({ databaseUrl: service.databaseUrl });
  afterAll(() => other.close());
  change = createRoomChange(service.serviceDatabase);
  changeElsewhere = createRoomChange(other.serviceDatabase);
});

const query = async (sql: string, ...values: unknown[]) =>
  (await service.database.pool.query(sql, values)).rows;
const addRoom = async (name = 'Attic'): Promise<number> =>
  (await query('INSERT INTO rooms (name) VALUES ($1) RETURNING id::int', name))[0].id;
const addGuest = (roomId: number, name: string) => query('INSERT INTO guests VALUES ($1, $2)', roomId, name);
const read = async (id: number) =>
  (await query('SELECT id::int, name, note, beds FROM rooms WHERE id = $1', id))[0];

test('the members that are given change, null among them, and the others stay; without a row nothing is returned', async () => {
  const id = await addRoom();
  const row = { id, name: 'Attic', note: null, beds: 2 };
  expect(await change(id, { note: 'quiet', name: undefined })).toEqual({ output: { ...row, note: 'quiet' } });
  expect(await change(id, { beds: 3 })).toEqual({ output: { ...row, note: 'quiet', beds: 3 } });
  expect(await change(id, { note: null })).toEqual({ output: { ...row, beds: 3 } });
  expect(await read(id)).toEqual({ ...row, beds: 3 });
  expect(await change(999_999, { beds: 3 })).toEqual({ output: undefined });
});

test('what refuses a change is named, the first that applies, with what it says; nothing changes', async () => {
  const id = await addRoom('Hall');
  await Promise.all([addGuest(id, 'Ann B.'), addGuest(id, 'Ben')]);
  expect(await change(id, { beds: 1, note: 'new' })).toEqual({
    refusal: 'too_few_beds',
    detail: '2 beds are needed',
  });
  await change(id, { name: 'Attic' });
  const refused = await change(id, { beds: 1, note: 'new' });
  expect(refused).toMatchObject({ refusal: 'has_guests' });
  expect('detail' in refused && refused.detail.split(', ').toSorted()).toEqual(['Ann B.', 'Ben']);
  expect(await read(id)).toMatchObject({ beds: 2, note: null });
  expect(await change(id, { note: 'new' })).toMatchObject({ output: { note: 'new' } });
});

test('a member that only refusals ask by is compared with the row as it is now, and nothing is set to it', async () => {
  const id = await addRoom();
  const row = { id, name: 'Attic', note: null, beds: 2 };
  expect(await change(id, { expectedBeds: 3, note: 'new' })).toEqual({
    refusal: 'beds_changed',
    detail: '2',
  });
  expect(await read(id)).toEqual(row);
  expect(await change(id, { expectedBeds: 2, note: 'new' })).toEqual({ output: { ...row, note: 'new' } });
  expect(await change(id, { expectedBeds: 3 })).toMatchObject({ refusal: 'beds_changed' });
  expect(await change(id, { expectedBeds: 2 })).toEqual({ output: { ...row, note: 'new' } });
  expect(await change(id, { expectedBeds: undefined, note: null })).toEqual({ output: row });
  expect(await change(999_999, { expectedBeds: 2, beds: 3 })).toEqual({ output: undefined });
});

test('of changes that expect the same at the same time, over two processes, the first is stored and refuses the others', async () => {
  const id = await addRoom();
  const changes = Array.from({ length: 20 }, (_, n) =>
    (n % 2 === 0 ? change : changeElsewhere)(id, { expectedBeds: 2, beds: n + 3 }),
  );
  const outcomes = await Promise.all(changes);
  const { beds } = await read(id);
  expect(outcomes.filter((each) => 'output' in each)).toMatchObject([{ output: { beds } }]);
  const refusals = outcomes.filter((each) => 'refusal' in each);
  expect(refusals).toEqual(Array(19).fill({ refusal: 'beds_changed', detail: String(beds) }));
});

test('changes of other members of one row at the same time, over two processes, are all kept', async () => {
  const id = await addRoom();
  const changes = Array.from({ length: 30 }, (_, n) => {
    const members = [{ name: `Name ${n}` }, { note: `Note ${n}` }, { beds: n + 1 }][n % 3] as object;
    return untilAnswered(() => (n % 2 === 0 ? change : changeElsewhere)(id, members));
  });
  const outputs = (await Promise.all(changes)) as { readonly output: Room }[];
  expect(outputs.map(({ output }) => output.id)).toEqual(Array(30).fill(id));
  const last = await read(id);
  expect(outputs.map(({ output }) => output)).toContainEqual(last);
  expect(last).toEqual({
    id,
    name: expect.stringMatching(/^Name/),
    note: expect.stringMatching(/^Note/),
    beds: expect.any(Number),
  });
});

test('changes that arrive while others are being stored share a statement', async () => {
  const ids = await Promise.all(Array.from({ length: 30 }, () => addRoom()));
  await query('DELETE FROM statements');
  // The trigger of the first statement waits for this.
  const end = await hold(service.database.pool, 'LOCK TABLE statements IN EXCLUSIVE MODE');
  const first = change(ids[0] as number, { beds: 4 });
  await untilWaiting(service.database.pool, 1);
  const others = ids.slice(1).map((id) => change(id, { beds: 4 }));
  await end();
  await Promise.all([first, ...others]);
  expect((await query('SELECT rows FROM statements ORDER BY rows')).map(({ rows }) => rows)).toEqual([1, 29]);
});

test('a row that somebody has locked holds up only who wants it, and who waits for it changes what is there then', async () => {
  const [locked, free] = [await addRoom(), await addRoom()];
  const end = await hold(service.database.pool, `UPDATE rooms SET note = 'theirs' WHERE id = ${locked}`);
  const waiting = change(locked, { beds: 5 });
  await untilWaiting(service.database.pool, 1);
  expect(await change(free, { beds: 5 })).toMatchObject({ output: { beds: 5 } });
  await end('COMMIT');
  expect(await waiting).toMatchObject({ output: { note: 'theirs', beds: 5 } });
});

test('who waits for a row decides by what those have stored who changed it meanwhile', async () => {
  const id = await addRoom();
  const end = await hold(
    service.database.pool,
    `UPDATE rooms SET beds = 4 WHERE id = ${id}; INSERT INTO guests VALUES (${id}, 'Ann')`,
  );
  const waiting = change(id, { beds: 3 });
  await untilWaiting(service.database.pool, 1);
  await end('COMMIT');
  expect(await waiting).toEqual({ refusal: 'has_guests', detail: 'Ann' });
});

test('a row that stays locked is an error within the time of an operation, and the change is not stored later', async () => {
  const id = await addRoom();
  const end = await hold(service.database.pool, `SELECT FROM rooms WHERE id = ${id} FOR UPDATE`);
  const limit = 2 * OPERATION_TIMEOUT_MS;
  const changes = Array.from({ length: 9 }, () => withTimeout(limit, change(id, { beds: 9 })));
  const outcomes = await Promise.allSettled(changes);
  const reasons = outcomes.map((each) => (each.status === 'rejected' ? String(each.reason) : 'stored'));
  expect(reasons.filter((each) => each === 'stored' || each.includes('No answer'))).toEqual([]);
  await end();
  expect(await read(id)).toMatchObject({ beds: 2 });
  expect(await change(id, { beds: 9 })).toMatchObject({ output: { beds: 9 } });
});

test('a change that PostgreSQL refuses is an error of whoever sent it alone', async () => {
  const ids = await Promise.all(Array.from({ length: 6 }, () => addRoom()));
  const outcomes = await Promise.allSettled(ids.map((id, n) => change(id, { beds: n })));
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', ...Array(5).fill('fulfilled')]);
});

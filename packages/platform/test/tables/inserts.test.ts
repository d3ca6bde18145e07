import { randomUUID } from 'node:crypto';
import { post, type TestResponse } from '@animal-store/platform/testing';
import { beforeAll, expect, test, vi } from 'vitest';
import { create, insertSql, list, newItem, newItemSchema, TABLE, TEXT } from '#operations-under-test';
import { createInsert } from '../../src/tables/inserts.js';
import { table } from '../../src/tables/table.js';
import { OPERATION_TIMEOUT_MS } from '../../src/timing/timeouts.js';
import { findServers } from '../support/service-role.js';
import { useService } from '../support/test-service.js';

const MOST_ATTEMPTS = 10;

/** Counts the statements that insert items, and rejects items by their text: with a constraint and with triggers. */
const SETUP = `
  CREATE TABLE statements (rows INT);
  CREATE FUNCTION count_statement() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO statements SELECT count(*) FROM inserted; RETURN NULL; END $$;
  CREATE TRIGGER count_statement AFTER INSERT ON ${TABLE} REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION count_statement();
  CREATE FUNCTION reject_cursed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.${TEXT} LIKE 'Cursed%' THEN RAISE 'no cursed items'; END IF;
      IF NEW.${TEXT} LIKE 'Ignored%' THEN RETURN NULL; END IF;
      RETURN NEW;
    END $$;
  CREATE TRIGGER reject_cursed BEFORE INSERT ON ${TABLE} FOR EACH ROW EXECUTE FUNCTION reject_cursed();
  CREATE FUNCTION abort_aborted() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE 'aborted' USING ERRCODE = split_part(NEW.${TEXT}, ' ', 2); END $$;
  CREATE CONSTRAINT TRIGGER abort_aborted AFTER INSERT ON ${TABLE} DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.${TEXT} LIKE 'Aborted%') EXECUTE FUNCTION abort_aborted();
  ALTER TABLE ${TABLE} ADD CHECK (${TEXT} NOT LIKE 'Unwanted%')`;

const { call, service } = useService();

beforeAll(async () => {
  await service.database.pool.query(SETUP);
  // A trigger of an operator runs with the rights of whoever inserts.
  await service.database.pool.query(`GRANT INSERT ON statements TO ${findServers().serviceRole.name}`);
});

async function readRowsPerStatement(): Promise<number[]> {
  const { rows } = await service.database.pool.query<{ rows: number }>(
    'DELETE FROM statements RETURNING rows',
  );
  return rows.map((row) => row.rows);
}

async function readNames(prefix = ''): Promise<string[]> {
  const { rows } = await service.database.pool.query<{ text: string }>(
    `DELETE FROM ${TABLE} WHERE starts_with(${TEXT}, $1) RETURNING ${TEXT} AS text`,
    [prefix],
  );
  return rows.map(({ text }) => text).sort();
}

/** Half of them with an Idempotency-Key. */
function createAll(names: readonly string[]): Promise<TestResponse[]> {
  return Promise.all(
    names.map((name, index) =>
      call(
        create.path,
        post(newItem(name, index + 1), index % 2 === 0 ? {} : { 'idempotency-key': randomUUID() }),
      ),
    ),
  );
}

const namesOf = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix} ${index}`);

let attempts = 0;

/**
 * A busy machine may answer with a 503 what it stores later. Then `send` is called again, with another prefix for its names.
 *
 * @param expected - The statuses of the responses: where one is a 503, that is no reason to send again.
 */
async function sendUntilServed(
  expected: readonly number[],
  send: (prefix: string) => Promise<TestResponse[]>,
): Promise<{ prefix: string; responses: TestResponse[] }> {
  const last = attempts + MOST_ATTEMPTS;
  for (;;) {
    attempts += 1;
    const prefix = `Attempt ${attempts}:`;
    const responses = await send(prefix);
    const isServed = responses.every(({ status }, index) => status !== 503 || expected[index] === 503);
    if (isServed || attempts === last) return { prefix, responses };
  }
}

test('creates that are pending together share statements, and each gets its own item', async () => {
  const names = namesOf('Shared', 60);
  const created = await Promise.all(
    names.map((name, n) => service.items.create({ ...newItem(name, n + 1), ...list.filter })),
  );
  expect(created.map(({ id, ...item }) => item)).toEqual(
    names.map((name, n) => newItemSchema.parse({ ...newItem(name, n + 1), ...list.filter })),
  );
  const { rows } = await service.database.pool.query(`SELECT id::int, ${TEXT} FROM ${TABLE} ORDER BY id`);
  expect(rows).toEqual(created.map((item) => ({ id: item.id, [TEXT]: item[TEXT] })));
  expect(await readRowsPerStatement()).toEqual([60]);
  expect(await readNames()).toEqual([...names].sort());
});

test('creates over HTTP get their own items, with and without an Idempotency-Key', async () => {
  const { prefix, responses } = await sendUntilServed([], async (prefix) => {
    await readRowsPerStatement();
    return createAll(namesOf(prefix, 80));
  });
  const names = namesOf(prefix, 80);
  expect(responses.map(({ status, body }) => [status, body])).toEqual(
    names.map((name, index) => [201, expect.objectContaining(newItem(name, index + 1))]),
  );
  const ids = responses.map(({ body }) => body.id);
  const { rows } = await service.database.pool.query(
    `SELECT id::int, ${TEXT} AS text FROM ${TABLE} WHERE starts_with(${TEXT}, $1)`,
    [prefix],
  );
  expect(new Map(rows.map(({ id, text }) => [id, text]))).toEqual(
    new Map(ids.map((id, index) => [id, names[index]])),
  );
  expect((await readRowsPerStatement()).length).toBeLessThan(80);
  expect(await readNames(prefix)).toEqual([...names].sort());
});

test.each([
  ['Unwanted', 500],
  ['Cursed', 500],
  ['Aborted 40001', 503],
  ['Aborted 57014', 503],
  ['Ignored', 500],
])('an item that the database rejects (%s) does not affect the others', async (name, expected) => {
  const besideRejected = (prefix: string) => {
    const wanted = namesOf(prefix, 38);
    return [...wanted.slice(0, 10), name, ...wanted.slice(10), name];
  };
  const statuses = besideRejected('Wanted').map((each) => (each === name ? expected : 201));
  const { prefix, responses } = await sendUntilServed(statuses, (prefix) =>
    createAll(besideRejected(prefix)),
  );
  expect(responses.map(({ status, body }) => [status, body[TEXT]])).toEqual(
    besideRejected(prefix).map((each, index) => [statuses[index], each === name ? undefined : each]),
  );
  expect(await readNames(prefix)).toEqual(namesOf(prefix, 38).sort());
  expect(await readNames(name)).toEqual([]);
});

test('an item for which PostgreSQL aborts a statement does not affect a replay that shares it', async () => {
  const createNamed = (name: string, key: string) =>
    call(create.path, post(newItem(name), { 'idempotency-key': key }));
  const { prefix, responses } = await sendUntilServed([201, 503, 201], async (prefix) => {
    const key = randomUUID();
    const first = await createNamed(prefix, key);
    return [
      first,
      ...(await Promise.all([createNamed('Aborted 40P01', randomUUID()), createNamed(prefix, key)])),
    ];
  });
  const [first, , replay] = responses;
  expect([replay?.status, replay?.body]).toEqual([201, first?.body]);
  expect(await readNames(prefix)).toEqual([prefix]);
  expect(await readNames('Aborted')).toEqual([]);
});

test('ids that somebody has brought along are a 503 for creates, never a 500, until the sequence has passed them', async () => {
  const { rows } = await service.database.pool.query<{ last: string }>(
    `SELECT nextval(pg_get_serial_sequence('${TABLE}', 'id')) AS last`,
  );
  const last = Number(rows[0]?.last);
  await service.database.pool.query(`${insertSql("'Brought'")} FROM generate_series(1, 30)`);
  await service.database.pool.query(`ALTER TABLE ${TABLE} ALTER COLUMN id RESTART WITH ${last + 1}`);
  const statuses = new Set<number>();
  await expect
    .poll(async () => {
      const responses = await createAll(namesOf('Next', 6));
      for (const { status } of responses) statuses.add(status);
      return responses.every(({ status }) => status === 201);
    })
    .toBe(true);
  expect([...statuses].sort()).toEqual([201, 503]);
  await readNames();
  await readRowsPerStatement();
});

test('an Idempotency-Key that is used many times in one statement creates one item, which all get', async () => {
  const [apiKey] = await service.keys.list();
  const key = {
    apiKeyId: apiKey?.id ?? '',
    value: randomUUID(),
    operation: create.name,
    batchIndex: 0,
    bodyHash: new Uint8Array(32),
  };
  const all = Array.from({ length: 30 }, () => service.items.create(newItem('Many'), key));
  expect(new Set((await Promise.all(all)).map(({ id }) => id)).size).toBe(1);
  expect(await readNames()).toEqual(['Many']);
});

test('an Idempotency-Key that is used several times at once creates one item, among others', async () => {
  const { prefix, responses } = await sendUntilServed([], async (prefix) => {
    const key = randomUUID();
    const once = Array.from({ length: 5 }, () =>
      call(create.path, post(newItem(`${prefix} once`), { 'idempotency-key': key })),
    );
    return (await Promise.all([createAll(namesOf(prefix, 20)), ...once])).flat();
  });
  expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 201));
  expect(new Set(responses.slice(20).map(({ body }) => body.id)).size).toBe(1);
  expect(await readNames(prefix)).toEqual([...namesOf(prefix, 20), `${prefix} once`].sort());
});

test('a create that waited until its caller was told to try again is not stored afterwards', async () => {
  const ends: ((rows: object[]) => void)[] = [];
  const query = vi.fn(() => new Promise((resolve) => ends.push(resolve)));
  const sails = table<{ id: number; name: string }, { name: string }>('sails', {
    id: 'bigint',
    name: 'text',
  });
  const insert = createInsert({ ...service.database, writes: { query, register() {} } as never }, sails);
  const first = insert({ name: 'First' });
  await expect.poll(() => query.mock.calls.length).toBe(1);
  const late = insert({ name: 'Late' });
  const later = performance.now() + OPERATION_TIMEOUT_MS;
  const clock = vi.spyOn(performance, 'now').mockReturnValue(later);
  ends[0]?.([{ output: { id: 1, name: 'First' } }]);
  await expect(late).rejects.toThrow('Not sent within 1500 ms');
  clock.mockRestore();
  expect(await first).toEqual({ output: { id: 1, name: 'First' }, isReplay: false });
  expect(query).toHaveBeenCalledTimes(1);
});

test('a create whose key was stored while its statement waited does not cost the creates merged with it their statement', async () => {
  const stored = Object.assign(new Error('duplicate key'), {
    code: '23505',
    constraint: 'idempotent_creates_pkey',
  });
  const namesIn = ([rows = '']: readonly string[]) =>
    JSON.parse(rows).map(({ name }: { name: string }) => name) as string[];
  const query = vi.fn(async (_statement: unknown, values: readonly string[]) =>
    namesIn(values).map((name) => ({ is_stored: false, output: { id: 1, name } })),
  );
  query.mockRejectedValueOnce(stored);
  const sails = table<{ id: number; name: string }, { name: string }>('sails', {
    id: 'bigint',
    name: 'text',
  });
  const insert = createInsert({ ...service.database, writes: { query, register() {} } as never }, sails);
  const keyOf = (value: string) => ({
    apiKeyId: randomUUID(),
    value,
    operation: 'createSail',
    batchIndex: 0,
    bodyHash: new Uint8Array(32),
  });
  const names = namesOf('Sail', 3);
  const created = await Promise.all(names.map((name) => insert({ name }, keyOf(name))));
  expect(created.map(({ output }) => output.name)).toEqual(names);
  expect(query.mock.calls.map(([, values]) => namesIn(values))).toEqual([names, names]);
});

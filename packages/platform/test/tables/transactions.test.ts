import { randomUUID } from 'node:crypto';
import { execute, post, untilServed } from '@animal-store/platform/testing';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import type { Database } from '../../src/connections/client.js';
import type { AnyPrisma } from '../../src/definition/definition.js';
import { createProcedure } from '../../src/operations/builder.js';
import { text } from '../../src/operations/input.js';
import type { Resource } from '../../src/operations/resource.js';
import type { IdempotencyKey } from '../../src/tables/idempotency.js';
import { createTransactions, type Transaction } from '../../src/tables/transactions.js';
import { BEGIN_FOR_LONG } from '../support/begin-for-long.js';
import { holdCreate } from '../support/hold-create.js';
import { useService } from '../support/test-service.js';

const SETUP = `
  CREATE TABLE notes (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text, at timestamptz DEFAULT now());
  CREATE TABLE lines (note_id int REFERENCES notes, name text CHECK (name <> 'Refused'));
  INSERT INTO insert_turns VALUES ('notes');
  GRANT ALL ON notes, lines TO PUBLIC`;

let databaseOfStore: Database;
/** What a note does in its transaction, besides being stored */
/** The table whose turn a note takes */
let turnOf = 'notes';
let inTransaction: (transaction: Transaction<AnyPrisma>) => Promise<unknown> = async () => {};

const createNoteStore = (database: Database) => {
  databaseOfStore = database;
  const transactions = createTransactions(database);
  return {
    create: (name: string, key: IdempotencyKey | undefined) =>
      transactions.once(key, async (transaction, { takeTurn }) => {
        await takeTurn(turnOf);
        const [note] = await transaction.$queryRaw<{ id: number; at: Date }[]>`
          INSERT INTO public.notes (name) VALUES (${name}) RETURNING id, at`;
        await transaction.$executeRaw`INSERT INTO public.lines VALUES (${note?.id}, ${name})`;
        await inTransaction(transaction);
        // Members of every kind whose text PostgreSQL could change: order, repeated white space, 17 digits.
        return { z: 0.1 + 0.2, id: note?.id, name, at: note?.at, none: undefined, big: 1e21, nul: null };
      }),
  };
};
type NoteStore = ReturnType<typeof createNoteStore>;

const notes: Resource<NoteStore> = {
  name: 'notes',
  description: 'Notes with lines',
  createStore: createNoteStore,
  procedures: {
    createNote: createProcedure<{ readonly notes: NoteStore }>()
      .meta({
        openapi: { method: 'POST', path: '/notes', summary: 'Add a note' },
        stability: 'beta',
        scope: 'any',
        success: { status: 201 },
        idempotent: true,
      })
      .input(z.object({ name: text(0, 200) }))
      .output(z.object({ id: z.int() }).loose())
      .mutation(async ({ ctx, input }) => {
        const note = await ctx.once((key) => ctx.notes.create(input.name, key));
        return note as typeof note & { id: number };
      }),
  },
};

const { call, service } = useService({ resources: [notes] });

beforeAll(async () => {
  await service.database.pool.query(SETUP);
  await (await databaseOfStore.loadPrisma()).$queryRaw`SELECT 1`;
});

const create = (name: string, key?: string) =>
  call('/v1/notes', post({ name }, key === undefined ? {} : { 'idempotency-key': key }));

/** How many notes and lines of a name there are, and keys whose response has it */
async function count(name: string): Promise<unknown> {
  const { rows } = await service.database.pool.query(
    `SELECT (SELECT count(*)::int FROM notes WHERE name = $1) AS notes,
       (SELECT count(*)::int FROM lines WHERE name = $1) AS lines,
       (SELECT count(*)::int FROM idempotent_creates WHERE response ->> 'name' = $1) AS keys`,
    [name],
  );
  return rows[0];
}

const textOf = async (name: string, key: string) => {
  const init = post({ name }, { 'idempotency-key': key, authorization: `Bearer ${service.key}` });
  const response = await fetch(`${service.url}/v1/notes`, init);
  return [response.headers.get('idempotency-replayed'), await response.text()] as const;
};

test('a repetition gets the bytes of the first response, and creates nothing', async () => {
  const name = ' "é\u{1f408}\u2028\\ {"b":1,  "a":2}';
  const key = randomUUID();
  const [first, replay] = [await textOf(name, key), await textOf(name, key)];
  expect([first[0], replay[0]]).toEqual([null, 'true']);
  expect(replay[1]).toBe(first[1]);
  expect(await count(name)).toEqual({ notes: 1, lines: 1, keys: 1 });
});

test('without a key, each create is one, and its response has the form of one with a key', async () => {
  const [first, second] = [await create('Twice'), await create('Twice')];
  expect([first.status, second.status]).toEqual([201, 201]);
  // Nothing reads a note by its id.
  expect(first.headers.has('location')).toBe(false);
  expect(Object.keys(first.body)).toEqual(Object.keys((await create('Keyed', randomUUID())).body));
  expect(await count('Twice')).toEqual({ notes: 2, lines: 2, keys: 0 });
});

test('20 parallel posts with one key create one note, and all return it', async () => {
  const key = randomUUID();
  const responses = await Promise.all(
    Array.from({ length: 20 }, () => untilServed(() => create('Parallel', key))),
  );
  expect(responses.map(({ status }) => status)).toEqual(Array(20).fill(201));
  expect(new Set(responses.map(({ body }) => body.id)).size).toBe(1);
  expect(responses.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(1);
  expect(await count('Parallel')).toEqual({ notes: 1, lines: 1, keys: 1 });
});

test('the same key with another body is a 422', async () => {
  const key = randomUUID();
  await create('One body', key);
  const { status, body } = await create('Another body', key);
  expect([status, body.code]).toEqual([422, 'idempotency_key_reused']);
  expect(await count('Another body')).toEqual({ notes: 0, lines: 0, keys: 0 });
});

test('while the first is running, a repetition is a 409', async () => {
  const key = randomUUID();
  const first = await service.database.pool.connect();
  const { rows } = await first.query('SELECT id FROM api_keys WHERE name = $1', ['test']);
  await first.query(BEGIN_FOR_LONG);
  await holdCreate(first, { apiKeyId: rows[0].id, operation: 'createNote', value: key });
  const { status, body } = await create('Meanwhile', key);
  expect([status, body.code]).toEqual([409, 'idempotency_key_in_use']);
  await first.query('ROLLBACK');
  first.release();
  expect((await create('Meanwhile', key)).status).toBe(201);
});

test('a key that has expired may be used again', async () => {
  const key = randomUUID();
  const first = await create('Expired', key);
  await service.database.pool.query(
    "UPDATE idempotent_creates SET created_at = created_at - interval '24 hours' WHERE key = $1",
    [key],
  );
  const again = await create('Expired', key);
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, null]);
  expect(again.body.id).not.toBe(first.body.id);
});

test('what the database refuses is stored neither in part nor with its key', async () => {
  const key = randomUUID();
  expect((await create('Refused', key)).status).toBe(500);
  expect(await count('Refused')).toEqual({ notes: 0, lines: 0, keys: 0 });
  expect((await create('Accepted', key)).status).toBe(201);
});

test.each([
  [
    'a statement that waits for a lock',
    (transaction: Transaction<AnyPrisma>) => transaction.$executeRaw`SELECT pg_sleep(3)`,
  ],
  ['a transaction that goes on for too long', () => new Promise((resolve) => setTimeout(resolve, 1_700))],
])('%s is a 503, and nothing of it is stored', async (reason, run) => {
  const key = randomUUID();
  inTransaction = run;
  const response = await create(reason, key);
  inTransaction = async () => {};
  expect(response.status).toBe(503);
  await expect.poll(async () => (await service.serviceDatabase.pool.query('SELECT 1')).rowCount).toBe(1);
  expect(await count(reason)).toEqual({ notes: 0, lines: 0, keys: 0 });
  expect((await create(reason, key)).status).toBe(201);
});

test('a note that takes its turn becomes visible after those with lower ids, and waits no longer than a request may', async () => {
  const other = await service.database.pool.connect();
  onTestFinished(() => other.release());
  const takeTurn = async () => {
    await other.query(BEGIN_FOR_LONG);
    await other.query("SELECT FROM insert_turns WHERE table_name = 'notes' FOR UPDATE");
  };
  await takeTurn();
  const { rows } = await other.query("INSERT INTO notes (name) VALUES ('First') RETURNING id");
  const creating = create('Second', randomUUID());
  const waiting =
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  await expect.poll(async () => (await execute(service.databaseUrl, waiting)).length).toBe(1);
  await other.query('COMMIT');
  const { status, body } = await creating;
  expect([status, body.id > rows[0].id]).toEqual([201, true]);
  await takeTurn();
  expect((await create('Late', randomUUID())).status).toBe(503);
  await other.query('ROLLBACK');
  expect(await count('Late')).toEqual({ notes: 0, lines: 0, keys: 0 });
});

test('the turn of a table whose migration added none is a 500, and nothing is stored', async () => {
  turnOf = 'lines';
  const { status } = await create('No turn', randomUUID());
  turnOf = 'notes';
  expect(status).toBe(500);
  expect(await count('No turn')).toEqual({ notes: 0, lines: 0, keys: 0 });
});

test('a connection that ends within the transaction is a 503, and nothing is stored', async () => {
  inTransaction = (transaction) => transaction.$executeRaw`SELECT pg_terminate_backend(pg_backend_pid())`;
  const response = await create('Cut', randomUUID());
  inTransaction = async () => {};
  expect(response.status).toBe(503);
  expect(await count('Cut')).toEqual({ notes: 0, lines: 0, keys: 0 });
});

test.each([1n, undefined])(
  'an output that is no JSON (%s) is an error, and nothing is stored',
  async (output) => {
    const transactions = createTransactions(service.serviceDatabase);
    const key = {
      apiKeyId: randomUUID(),
      value: 'a',
      operation: 'x',
      batchIndex: 0,
      bodyHash: new Uint8Array(32),
    };
    for (const each of [undefined, key]) {
      const created = transactions.once(each, async (transaction) => {
        await transaction.$executeRaw`INSERT INTO public.notes (name) VALUES ('No JSON')`;
        return output;
      });
      await expect(created).rejects.toThrow(TypeError);
    }
    expect(await count('No JSON')).toEqual({ notes: 0, lines: 0, keys: 0 });
  },
);

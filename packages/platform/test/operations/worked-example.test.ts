import { createCaller, message, post, toolCall, untilServed } from '@animal-store/platform/testing';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { ApiError, create, definition, read } from '#operations-under-test';
import type { Database } from '../../src/connections/client.js';
import { readCode } from '../../src/connections/outage.js';
import { createProcedure } from '../../src/operations/builder.js';
import { assignedId, INPUT_ERROR, int64, text } from '../../src/operations/input.js';
import type { Resource } from '../../src/operations/resource.js';
import type { IdempotencyKey } from '../../src/tables/idempotency.js';
import { createInsert } from '../../src/tables/inserts.js';
import { createReads } from '../../src/tables/reads.js';
import { table } from '../../src/tables/table.js';
import { createTransactions } from '../../src/tables/transactions.js';
import { expectInvalidIdsRejected, expectUnstorableBodiesRejected } from '../support/document-requests.js';
import { errorOf } from '../support/error-table.js';
import { createChecker } from '../support/openapi-checker.js';
import { findServers } from '../support/service-role.js';
import { startService } from '../support/test-service.js';

// A whole resource. As part of the service, each section is a file of src/sails/.

// --- schema.ts

const name = text(1, 100).meta({ description: 'Name of the sail' });
const sail = z.object({ id: assignedId(), name }).meta({ id: 'Sail', examples: [{ id: 1, name: 'Jib' }] });
const newSail = z
  .object({ name }, { error: INPUT_ERROR })
  .meta({ id: 'NewSail', examples: [{ name: 'Jib' }] });
const sailReference = z.object({ sailId: int64().meta({ description: 'Identifier of the sail' }) });
const sailChange = sailReference.extend({ name }).meta({ id: 'SailChange', examples: [{ name: 'Genoa' }] });

const label = text(1, 100).meta({ description: 'What is written on its lid' });
const locker = z
  .object({ id: assignedId(), label, sails: z.array(sail) })
  .meta({ id: 'Locker', examples: [{ id: 1, label: 'Light', sails: [{ id: 1, name: 'Jib' }] }] });
const newLocker = z
  .object({ label, names: z.array(name).min(1).max(9) }, { error: INPUT_ERROR })
  .meta({ id: 'NewLocker', examples: [{ label: 'Light', names: ['Jib'] }] });

const lockerReference = z.object({ lockerId: int64().meta({ description: 'Identifier of the locker' }) });

type Sail = z.output<typeof sail>;
type Locker = z.output<typeof locker>;
type NewLocker = z.output<typeof newLocker>;
type NewSail = z.output<typeof newSail>;

// --- errors.ts

/** A resource brings codes of its own. Here it is the first that the service has, whatever that sells. */
const [STOWED] = Object.keys(definition.errors) as [keyof typeof definition.errors];

// --- store.ts

type SailStore = ReturnType<typeof createSailStore>;
const sailTable = table<Sail, NewSail>('sails', { id: 'bigint', name: 'text' });
function createSailStore(database: Database) {
  const { loadPrisma, inSchema } = database;
  const transactions = createTransactions(database);
  return {
    ...createReads(database, sailTable),
    create: createInsert(database, sailTable),
    /**
     * Two tables, so a transaction. With models in schema.prisma it is `transaction.locker.create({ data: … })`. The turns let
     * both become visible in the order of their ids.
     */
    createLocker: ({ label, names }: NewLocker, key?: IdempotencyKey) =>
      transactions.once<Locker>(key, async (transaction, { takeTurn }) => {
        const sails: Sail[] = [];
        await takeTurn('sails');
        for (const name of names) {
          const sql = `INSERT INTO ${inSchema('sails')} (name) VALUES ($1) RETURNING id::int, name`;
          sails.push(...(await transaction.$queryRawUnsafe<Sail[]>(sql, name)));
        }
        const ids = sails.map(({ id }) => id);
        await takeTurn('lockers');
        const sql = `INSERT INTO ${inSchema('lockers')} (label, sails) VALUES ($1, $2) RETURNING id::int, label`;
        const [locker] = await transaction.$queryRawUnsafe<[Omit<Locker, 'sails'>]>(sql, label, ids);
        return { ...locker, sails };
      }),
    getLocker: async (id: number) => {
      const sql = `
        SELECT id::int, label, ARRAY(
          SELECT json_build_object('id', sail.id, 'name', sail.name) FROM ${inSchema('sails')} AS sail WHERE sail.id = ANY (locker.sails)
          ORDER BY sail.id
        ) AS sails FROM ${inSchema('lockers')} AS locker WHERE id = $1`;
      const lockers = await (await loadPrisma()).$queryRawUnsafe<Locker[]>(sql, id);
      return lockers[0];
    },
    rename: async (id: number, name: string) =>
      (await loadPrisma()).$executeRawUnsafe(
        `UPDATE ${inSchema('sails')} SET name = $1 WHERE id = $2`,
        name,
        id,
      ),
    /** Responds with STOWED for a sail that is in one. */
    delete: (id: number) =>
      transactions.run(async (transaction, { lockRow }) => {
        if (!(await lockRow('sails', id))) throw new ApiError('not_found');
        const lockers = `SELECT FROM ${inSchema('lockers')} WHERE $1 = ANY (sails)`;
        if ((await transaction.$queryRawUnsafe<object[]>(lockers, id)).length > 0) throw new ApiError(STOWED);
        await transaction.$executeRawUnsafe(`DELETE FROM ${inSchema('sails')} WHERE id = $1`, id);
      }),
  };
}

// --- procedures.ts

/** PostgreSQL's code for a row that a unique index refuses. */
const UNIQUE_VIOLATION = '23505';

const procedure = createProcedure<{ readonly sails: SailStore }>();
const createSail = procedure
  .meta({
    openapi: { method: 'POST', path: '/sails', summary: 'Add a sail' },
    stability: 'beta',
    scope: create.scope,
    success: { status: 201, location: ({ id }: Sail) => `/sails/${id}` },
    idempotent: true,
  })
  .input(newSail)
  .output(sail)
  .mutation(({ ctx, input }) => ctx.once((key) => ctx.sails.create(input, key)));
const getSail = procedure
  .meta({
    openapi: { method: 'GET', path: '/sails/{sailId}', summary: 'Get a sail' },
    stability: 'beta',
    scope: read.scope,
  })
  .input(sailReference)
  .output(sail)
  .query(async ({ ctx, input }) => {
    const found = await ctx.sails.get(input.sailId);
    if (!found) throw new ApiError('not_found');
    return found;
  });
const getLocker = procedure
  .meta({
    openapi: { method: 'GET', path: '/lockers/{lockerId}', summary: 'Get a locker' },
    stability: 'beta',
    scope: read.scope,
  })
  .input(lockerReference)
  .output(locker)
  .query(async ({ ctx, input }) => {
    const found = await ctx.sails.getLocker(input.lockerId);
    if (!found) throw new ApiError('not_found');
    return found;
  });
const createLocker = procedure
  .meta({
    openapi: { method: 'POST', path: '/lockers', summary: 'Add a locker of new sails' },
    stability: 'beta',
    scope: create.scope,
    success: { status: 201, location: ({ id }: Locker) => `/lockers/${id}` },
    idempotent: true,
  })
  .input(newLocker)
  .output(locker)
  .mutation(async ({ ctx, input }) =>
    ctx
      .once((key) => ctx.sails.createLocker(input, key))
      .catch((error) => {
        if (readCode(error) !== UNIQUE_VIOLATION) throw error;
        throw new ApiError('invalid_request', { message: 'names has one that is taken.' });
      }),
  );
const renameSail = procedure
  .meta({
    openapi: { method: 'PATCH', path: '/sails/{sailId}', summary: 'Rename a sail' },
    stability: 'beta',
    scope: create.scope,
  })
  .input(sailChange)
  .output(sail)
  .mutation(async ({ ctx, input: { sailId, name } }) => {
    const count = await ctx.sails.rename(sailId, name).catch((error) => {
      if (readCode(error) !== UNIQUE_VIOLATION) throw error;
      throw new ApiError('invalid_request', { message: 'name is taken.', fields: { name: 'is taken' } });
    });
    if (count === 0) throw new ApiError('not_found');
    return { id: sailId, name };
  });
const deleteSail = procedure
  .meta({
    openapi: { method: 'DELETE', path: '/sails/{sailId}', summary: 'Delete a sail' },
    stability: 'beta',
    scope: create.scope,
    errors: [STOWED],
  })
  .input(sailReference)
  .output(z.void())
  .mutation(({ ctx, input }) => ctx.sails.delete(input.sailId));
const sails: Resource<SailStore> = {
  name: 'sails',
  description: 'What drives the boats',
  createStore: createSailStore,
  procedures: { createSail, getSail, createLocker, getLocker, renameSail, deleteSail },
};

// --- test/sails/sails.test.ts

const PERSONAL = { plan: 'enterprise', perMinute: 1, perDay: 9, expiresAt: null } as const;
const checker = createChecker([sails]);
const service = await startService({ resources: [sails], corsOrigins: ['https://shop.example'] });
// You may be about to make a src/sails/ of it.
await service.database.pool.query('DROP TABLE IF EXISTS sails, lockers');
await service.database.pool.query('CREATE TABLE sails (id bigint GENERATED ALWAYS AS IDENTITY, name text)');
await service.database.pool.query(
  'CREATE TABLE lockers (id bigint GENERATED ALWAYS AS IDENTITY, label text, sails bigint[])',
);
await service.database.pool.query(
  "INSERT INTO insert_turns VALUES ('sails'), ('lockers') ON CONFLICT DO NOTHING",
);
await service.database.pool.query("CREATE UNIQUE INDEX ON sails (name) WHERE name = 'Trysail'");
// The `grants` of the store's identity have this for its tables.
await service.database.pool.query(
  `GRANT SELECT, INSERT, UPDATE, DELETE ON sails, lockers TO ${findServers().serviceRole.name}`,
);
afterAll(() => service.close());
const call = createCaller(service);

/** Calls REST, and fails unless the OpenAPI document describes the response. */
async function rest(operation: string, path: string, init: Parameters<typeof call>[1]) {
  const collection = operation.endsWith('Locker') ? 'lockers' : 'sails';
  const response = await untilServed(() => call(`/v1/${collection}${path}`, init));
  checker.expectDescribed(operation, response);
  return response;
}
const patch = (body: unknown) => ({ ...post(body), method: 'PATCH' });

test('a create repeats its response under an Idempotency-Key, over either protocol', async () => {
  const init = post({ name: 'Jib' }, { 'idempotency-key': 'one' });
  const { status, body, headers } = await rest('createSail', '', init);
  expect([status, body, headers.get('location')]).toEqual([201, { id: 1, name: 'Jib' }, '/store/v1/sails/1']);
  expect((await rest('createSail', '', init)).headers.get('idempotency-replayed')).toBe('true');
  const rpc = post({ name: 'Bell' }, { 'idempotency-key': 'rpc' });
  const [first, again] = [await call('/trpc/createSail', rpc), await call('/trpc/createSail', rpc)];
  expect([first.body.result.data.name, again.body]).toEqual(['Bell', first.body]);
  expect(again.headers.get('idempotency-replayed')).toBe('true');
});

test('a create of several rows repeats its response, too, and is stored as a whole or not at all', async () => {
  const init = post({ label: 'Two', names: ['Main', 'Mizzen'] }, { 'idempotency-key': 'one' });
  const first = await rest('createLocker', '', init);
  expect([first.status, first.body]).toMatchObject([201, { label: 'Two', sails: [{ name: 'Main' }, {}] }]);
  const replay = await rest('createLocker', '', init);
  expect([replay.headers.get('idempotency-replayed'), replay.body]).toEqual(['true', first.body]);
  const taken = post({ label: 'Three', names: ['Gaff', 'Trysail', 'Trysail'] }, { 'idempotency-key': 'two' });
  expect((await rest('createLocker', '', taken)).status).toBe(400);
  const { rows } = await service.database.pool.query(
    "SELECT label FROM lockers UNION ALL SELECT name FROM sails WHERE name IN ('Main', 'Mizzen', 'Gaff') ORDER BY 1",
  );
  expect(rows.map(({ label }) => label)).toEqual(['Main', 'Mizzen', 'Two']);
});

test('each resource is read by its own id, over either protocol', async () => {
  const locker = (await rest('createLocker', '', post({ label: 'Four', names: ['Drifter', 'Code zero'] })))
    .body;
  const [sail] = locker.sails;
  for (const [operation, reference, id, item] of [
    ['getSail', 'sailId', sail.id, sail],
    ['getLocker', 'lockerId', locker.id, locker],
  ] as const) {
    expect((await rest(operation, `/${id}`, {})).body).toEqual(item);
    const input = encodeURIComponent(JSON.stringify({ [reference]: id }));
    expect((await call(`/trpc/${operation}?input=${input}`)).body.result.data).toEqual(item);
    expect((await rest(operation, '/999', {})).body.code).toBe('not_found');
  }
});

test('a change that the state of another row forbids has a code of its own, over each protocol', async () => {
  const [sail] = (await rest('createLocker', '', post({ label: 'Five', names: ['Spanker'] }))).body.sails;
  const refused = await rest('deleteSail', `/${sail.id}`, { method: 'DELETE' });
  const { status, message } = errorOf(STOWED);
  expect([refused.status, refused.body]).toEqual([status, { code: STOWED, message, status }]);
  const { data } = (await call('/trpc/deleteSail', post({ sailId: sail.id }))).body.error;
  expect(data.error).toEqual(refused.body);
  const { result } = (await call('/mcp', toolCall('deleteSail', { sailId: sail.id }))).body;
  expect(result).toMatchObject({ isError: true, structuredContent: { code: STOWED, status } });
  expect((await rest('getSail', `/${sail.id}`, {})).body).toEqual(sail);
});

test('a PATCH takes its id from the path and the rest from the body, a DELETE responds with 204', async () => {
  const { id } = (await rest('createSail', '', post({ name: 'Lug' }))).body;
  expect((await rest('renameSail', `/${id}`, patch({ name: 'Genoa', sailId: 0 }))).body).toEqual({
    id,
    name: 'Genoa',
  });
  expect((await call('/trpc/renameSail', post({ sailId: id, name: 'Sprit' }))).body.result.data.name).toBe(
    'Sprit',
  );
  expect(await rest('deleteSail', `/${id}`, { method: 'DELETE' })).toMatchObject({
    status: 204,
    body: undefined,
  });
  expect((await call('/trpc/deleteSail', post({ sailId: id }))).body.error.data.error.code).toBe('not_found');
});

test('all of them are tools, with hints that say what they do', async () => {
  const { tools } = (await call('/mcp', message('tools/list'))).body.result;
  expect(
    tools.map(({ name, title, annotations }: Record<string, never>) => [name, title, annotations]),
  ).toMatchObject([
    ['createSail', 'Add a sail', { readOnlyHint: false, destructiveHint: false, idempotentHint: false }],
    ['getSail', 'Get a sail', { readOnlyHint: true }],
    ['createLocker', 'Add a locker of new sails', { idempotentHint: false }],
    ['getLocker', 'Get a locker', { readOnlyHint: true }],
    ['renameSail', 'Rename a sail', { readOnlyHint: false, destructiveHint: true, idempotentHint: false }],
    ['deleteSail', 'Delete a sail', { readOnlyHint: false, destructiveHint: true, idempotentHint: true }],
  ]);
  expect(tools.find(({ name }: { name: string }) => name === 'renameSail').inputSchema).toMatchObject({
    required: ['sailId', 'name'],
  });
  const use = async (name: string, input: object) => (await call('/mcp', toolCall(name, input))).body.result;
  const { id } = (await use('createSail', { name: 'Kite', idempotencyKey: 'kite' })).structuredContent;
  expect((await use('createSail', { name: 'Kite', idempotencyKey: 'kite' })).structuredContent).toEqual({
    id,
    name: 'Kite',
  });
  expect((await use('renameSail', { sailId: id, name: 'Gaff' })).structuredContent).toEqual({
    id,
    name: 'Gaff',
  });
  expect(await use('deleteSail', { sailId: id })).toMatchObject({
    content: [{ type: 'text', text: 'Done.' }],
  });
  expect((await use('deleteSail', { sailId: id })).structuredContent).toMatchObject({
    code: 'not_found',
    status: 404,
  });
});

test('what a constraint forbids is an error for the client, over either protocol', async () => {
  const [first, second] = [
    (await rest('createSail', '', post({ name: 'Trysail' }))).body,
    (await rest('createSail', '', post({ name: 'Yankee' }))).body,
  ];
  expect(first.name).toBe('Trysail');
  const taken = await rest('renameSail', `/${second.id}`, patch({ name: 'Trysail' }));
  expect(taken.body).toEqual({ code: 'invalid_request', message: 'name is taken.', status: 400 });
  const { data } = (await call('/trpc/renameSail', post({ sailId: second.id, name: 'Trysail' }))).body.error;
  expect(data).toMatchObject({ error: taken.body, fields: { name: 'is taken' } });
});

test('errors, limits and CORS need no code in the resource', async () => {
  expect((await rest('renameSail', '/none', patch({ name: 'Genoa' }))).status).toBe(404);
  expect((await rest('renameSail', '/1', patch({ name: 1 }))).body.message).toBe(
    'name must be a string of 1 to 100 characters.',
  );
  expect((await rest('renameSail', '/1', { method: 'PATCH', body: 'name' })).status).toBe(415);
  expect((await rest('deleteSail', '/1', { method: 'PUT' })).headers.get('allow')).toBe(
    'GET, PATCH, DELETE, HEAD',
  );
  const { key } = await service.keys.create({ name: 'limited', ...PERSONAL });
  expect((await rest('deleteSail', '/999', { method: 'DELETE', key })).status).toBe(404);
  expect((await rest('deleteSail', '/999', { method: 'DELETE', key })).status).toBe(429);
  const headers = { origin: 'https://shop.example', 'access-control-request-method': 'PATCH' };
  const preflight = await call('/v1/sails/1', { method: 'OPTIONS', headers });
  expect(preflight.headers.get('access-control-allow-methods')).toBe('POST, GET, HEAD, PATCH, DELETE');
});

test('no operation answers 500 to a body or an identifier that the database cannot store', async () => {
  await expectUnstorableBodiesRejected(checker, call);
  await expectInvalidIdsRejected(checker, call);
});

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

// A whole resource. As part of the service, each section is a file of src/toys/.

// --- schema.ts

const name = text(1, 100).meta({ description: 'Name of the toy' });
const toy = z.object({ id: assignedId(), name }).meta({ id: 'Toy', examples: [{ id: 1, name: 'Ball' }] });
const newToy = z
  .object({ name }, { error: INPUT_ERROR })
  .meta({ id: 'NewToy', examples: [{ name: 'Ball' }] });
const toyReference = z.object({ toyId: int64().meta({ description: 'Identifier of the toy' }) });
const toyChange = toyReference.extend({ name }).meta({ id: 'ToyChange', examples: [{ name: 'Bone' }] });

const label = text(1, 100).meta({ description: 'What is written on the box' });
const box = z
  .object({ id: assignedId(), label, toys: z.array(toy) })
  .meta({ id: 'Box', examples: [{ id: 1, label: 'Balls', toys: [{ id: 1, name: 'Ball' }] }] });
const newBox = z
  .object({ label, names: z.array(name).min(1).max(9) }, { error: INPUT_ERROR })
  .meta({ id: 'NewBox', examples: [{ label: 'Balls', names: ['Ball'] }] });

const boxReference = z.object({ boxId: int64().meta({ description: 'Identifier of the box' }) });

type Toy = z.output<typeof toy>;
type Box = z.output<typeof box>;
type NewBox = z.output<typeof newBox>;
type NewToy = z.output<typeof newToy>;

// --- errors.ts

/** A resource brings codes of its own. Here it is the first that the service has, whatever that sells. */
const [IN_A_BOX] = Object.keys(definition.errors) as [keyof typeof definition.errors];

// --- store.ts

type ToyStore = ReturnType<typeof createToyStore>;
const toyTable = table<Toy, NewToy>('toys', { id: 'bigint', name: 'text' });
function createToyStore(database: Database) {
  const { loadPrisma, inSchema } = database;
  const transactions = createTransactions(database);
  return {
    ...createReads(database, toyTable),
    create: createInsert(database, toyTable),
    /**
     * Two tables, so a transaction. With models in schema.prisma it is `transaction.box.create({ data: … })`. The turns let
     * both become visible in the order of their ids.
     */
    createBox: ({ label, names }: NewBox, key?: IdempotencyKey) =>
      transactions.once<Box>(key, async (transaction, { takeTurn }) => {
        const toys: Toy[] = [];
        await takeTurn('toys');
        for (const name of names) {
          const sql = `INSERT INTO ${inSchema('toys')} (name) VALUES ($1) RETURNING id::int, name`;
          toys.push(...(await transaction.$queryRawUnsafe<Toy[]>(sql, name)));
        }
        const ids = toys.map(({ id }) => id);
        await takeTurn('boxes');
        const sql = `INSERT INTO ${inSchema('boxes')} (label, toys) VALUES ($1, $2) RETURNING id::int, label`;
        const [box] = await transaction.$queryRawUnsafe<[Omit<Box, 'toys'>]>(sql, label, ids);
        return { ...box, toys };
      }),
    getBox: async (id: number) => {
      const sql = `
        SELECT id::int, label, ARRAY(
          SELECT json_build_object('id', toy.id, 'name', toy.name) FROM ${inSchema('toys')} AS toy WHERE toy.id = ANY (box.toys)
          ORDER BY toy.id
        ) AS toys FROM ${inSchema('boxes')} AS box WHERE id = $1`;
      const boxes = await (await loadPrisma()).$queryRawUnsafe<Box[]>(sql, id);
      return boxes[0];
    },
    rename: async (id: number, name: string) =>
      (await loadPrisma()).$executeRawUnsafe(
        `UPDATE ${inSchema('toys')} SET name = $1 WHERE id = $2`,
        name,
        id,
      ),
    /** Responds with IN_A_BOX for a toy that is in one. */
    delete: (id: number) =>
      transactions.run(async (transaction, { lockRow }) => {
        if (!(await lockRow('toys', id))) throw new ApiError('not_found');
        const boxes = `SELECT FROM ${inSchema('boxes')} WHERE $1 = ANY (toys)`;
        if ((await transaction.$queryRawUnsafe<object[]>(boxes, id)).length > 0) throw new ApiError(IN_A_BOX);
        await transaction.$executeRawUnsafe(`DELETE FROM ${inSchema('toys')} WHERE id = $1`, id);
      }),
  };
}

// --- procedures.ts

/** PostgreSQL's code for a row that a unique index refuses. */
const UNIQUE_VIOLATION = '23505';

const procedure = createProcedure<{ readonly toys: ToyStore }>();
const createToy = procedure
  .meta({
    openapi: { method: 'POST', path: '/toys', summary: 'Add a toy' },
    stability: 'beta',
    scope: create.scope,
    success: { status: 201, location: ({ id }: Toy) => `/toys/${id}` },
    idempotent: true,
  })
  .input(newToy)
  .output(toy)
  .mutation(({ ctx, input }) => ctx.once((key) => ctx.toys.create(input, key)));
const getToy = procedure
  .meta({
    openapi: { method: 'GET', path: '/toys/{toyId}', summary: 'Get a toy' },
    stability: 'beta',
    scope: read.scope,
  })
  .input(toyReference)
  .output(toy)
  .query(async ({ ctx, input }) => {
    const found = await ctx.toys.get(input.toyId);
    if (!found) throw new ApiError('not_found');
    return found;
  });
const getBox = procedure
  .meta({
    openapi: { method: 'GET', path: '/boxes/{boxId}', summary: 'Get a box' },
    stability: 'beta',
    scope: read.scope,
  })
  .input(boxReference)
  .output(box)
  .query(async ({ ctx, input }) => {
    const found = await ctx.toys.getBox(input.boxId);
    if (!found) throw new ApiError('not_found');
    return found;
  });
const createBox = procedure
  .meta({
    openapi: { method: 'POST', path: '/boxes', summary: 'Add a box of new toys' },
    stability: 'beta',
    scope: create.scope,
    success: { status: 201, location: ({ id }: Box) => `/boxes/${id}` },
    idempotent: true,
  })
  .input(newBox)
  .output(box)
  .mutation(async ({ ctx, input }) =>
    ctx
      .once((key) => ctx.toys.createBox(input, key))
      .catch((error) => {
        if (readCode(error) !== UNIQUE_VIOLATION) throw error;
        throw new ApiError('invalid_request', { message: 'names has one that is taken.' });
      }),
  );
const renameToy = procedure
  .meta({
    openapi: { method: 'PATCH', path: '/toys/{toyId}', summary: 'Rename a toy' },
    stability: 'beta',
    scope: create.scope,
  })
  .input(toyChange)
  .output(toy)
  .mutation(async ({ ctx, input: { toyId, name } }) => {
    const count = await ctx.toys.rename(toyId, name).catch((error) => {
      if (readCode(error) !== UNIQUE_VIOLATION) throw error;
      throw new ApiError('invalid_request', { message: 'name is taken.', fields: { name: 'is taken' } });
    });
    if (count === 0) throw new ApiError('not_found');
    return { id: toyId, name };
  });
const deleteToy = procedure
  .meta({
    openapi: { method: 'DELETE', path: '/toys/{toyId}', summary: 'Delete a toy' },
    stability: 'beta',
    scope: create.scope,
    errors: [IN_A_BOX],
  })
  .input(toyReference)
  .output(z.void())
  .mutation(({ ctx, input }) => ctx.toys.delete(input.toyId));
const toys: Resource<ToyStore> = {
  name: 'toys',
  description: 'Things that animals play with',
  createStore: createToyStore,
  procedures: { createToy, getToy, createBox, getBox, renameToy, deleteToy },
};

// --- test/toys/toys.test.ts

const PERSONAL = { plan: 'enterprise', perMinute: 1, perDay: 9, expiresAt: null } as const;
const checker = createChecker([toys]);
const service = await startService({ resources: [toys], corsOrigins: ['https://shop.example'] });
// You may be about to make a src/toys/ of it.
await service.database.pool.query('DROP TABLE IF EXISTS toys, boxes');
await service.database.pool.query('CREATE TABLE toys (id bigint GENERATED ALWAYS AS IDENTITY, name text)');
await service.database.pool.query(
  'CREATE TABLE boxes (id bigint GENERATED ALWAYS AS IDENTITY, label text, toys bigint[])',
);
await service.database.pool.query(
  "INSERT INTO insert_turns VALUES ('toys'), ('boxes') ON CONFLICT DO NOTHING",
);
await service.database.pool.query("CREATE UNIQUE INDEX ON toys (name) WHERE name = 'Teddy'");
// The `grants` of the store's identity have this for its tables.
await service.database.pool.query(
  `GRANT SELECT, INSERT, UPDATE, DELETE ON toys, boxes TO ${findServers().serviceRole.name}`,
);
afterAll(() => service.close());
const call = createCaller(service);

/** Calls REST, and fails unless the OpenAPI document describes the response. */
async function rest(operation: string, path: string, init: Parameters<typeof call>[1]) {
  const collection = operation.endsWith('Box') ? 'boxes' : 'toys';
  const response = await untilServed(() => call(`/v1/${collection}${path}`, init));
  checker.expectDescribed(operation, response);
  return response;
}
const patch = (body: unknown) => ({ ...post(body), method: 'PATCH' });

test('a create repeats its response under an Idempotency-Key, over either protocol', async () => {
  const init = post({ name: 'Ball' }, { 'idempotency-key': 'one' });
  const { status, body, headers } = await rest('createToy', '', init);
  expect([status, body, headers.get('location')]).toEqual([201, { id: 1, name: 'Ball' }, '/store/v1/toys/1']);
  expect((await rest('createToy', '', init)).headers.get('idempotency-replayed')).toBe('true');
  const rpc = post({ name: 'Bell' }, { 'idempotency-key': 'rpc' });
  const [first, again] = [await call('/trpc/createToy', rpc), await call('/trpc/createToy', rpc)];
  expect([first.body.result.data.name, again.body]).toEqual(['Bell', first.body]);
  expect(again.headers.get('idempotency-replayed')).toBe('true');
});

test('a create of several rows repeats its response, too, and is stored as a whole or not at all', async () => {
  const init = post({ label: 'Two', names: ['Car', 'Bus'] }, { 'idempotency-key': 'one' });
  const first = await rest('createBox', '', init);
  expect([first.status, first.body]).toMatchObject([201, { label: 'Two', toys: [{ name: 'Car' }, {}] }]);
  const replay = await rest('createBox', '', init);
  expect([replay.headers.get('idempotency-replayed'), replay.body]).toEqual(['true', first.body]);
  const taken = post({ label: 'Three', names: ['Cube', 'Teddy', 'Teddy'] }, { 'idempotency-key': 'two' });
  expect((await rest('createBox', '', taken)).status).toBe(400);
  const { rows } = await service.database.pool.query(
    "SELECT label FROM boxes UNION ALL SELECT name FROM toys WHERE name IN ('Car', 'Bus', 'Cube') ORDER BY 1",
  );
  expect(rows.map(({ label }) => label)).toEqual(['Bus', 'Car', 'Two']);
});

test('each resource is read by its own id, over either protocol', async () => {
  const box = (await rest('createBox', '', post({ label: 'Four', names: ['Dice', 'Yo-yo'] }))).body;
  const [toy] = box.toys;
  for (const [operation, reference, id, item] of [
    ['getToy', 'toyId', toy.id, toy],
    ['getBox', 'boxId', box.id, box],
  ] as const) {
    expect((await rest(operation, `/${id}`, {})).body).toEqual(item);
    const input = encodeURIComponent(JSON.stringify({ [reference]: id }));
    expect((await call(`/trpc/${operation}?input=${input}`)).body.result.data).toEqual(item);
    expect((await rest(operation, '/999', {})).body.code).toBe('not_found');
  }
});

test('a change that the state of another row forbids has a code of its own, over each protocol', async () => {
  const [toy] = (await rest('createBox', '', post({ label: 'Five', names: ['Robot'] }))).body.toys;
  const refused = await rest('deleteToy', `/${toy.id}`, { method: 'DELETE' });
  const { status, message } = errorOf(IN_A_BOX);
  expect([refused.status, refused.body]).toEqual([status, { code: IN_A_BOX, message, status }]);
  const { data } = (await call('/trpc/deleteToy', post({ toyId: toy.id }))).body.error;
  expect(data.error).toEqual(refused.body);
  const { result } = (await call('/mcp', toolCall('deleteToy', { toyId: toy.id }))).body;
  expect(result).toMatchObject({ isError: true, structuredContent: { code: IN_A_BOX, status } });
  expect((await rest('getToy', `/${toy.id}`, {})).body).toEqual(toy);
});

test('a PATCH takes its id from the path and the rest from the body, a DELETE responds with 204', async () => {
  const { id } = (await rest('createToy', '', post({ name: 'Rope' }))).body;
  expect((await rest('renameToy', `/${id}`, patch({ name: 'Bone', toyId: 0 }))).body).toEqual({
    id,
    name: 'Bone',
  });
  expect((await call('/trpc/renameToy', post({ toyId: id, name: 'Stick' }))).body.result.data.name).toBe(
    'Stick',
  );
  expect(await rest('deleteToy', `/${id}`, { method: 'DELETE' })).toMatchObject({
    status: 204,
    body: undefined,
  });
  expect((await call('/trpc/deleteToy', post({ toyId: id }))).body.error.data.error.code).toBe('not_found');
});

test('all of them are tools, with hints that say what they do', async () => {
  const { tools } = (await call('/mcp', message('tools/list'))).body.result;
  expect(
    tools.map(({ name, title, annotations }: Record<string, never>) => [name, title, annotations]),
  ).toMatchObject([
    ['createToy', 'Add a toy', { readOnlyHint: false, destructiveHint: false, idempotentHint: false }],
    ['getToy', 'Get a toy', { readOnlyHint: true }],
    ['createBox', 'Add a box of new toys', { idempotentHint: false }],
    ['getBox', 'Get a box', { readOnlyHint: true }],
    ['renameToy', 'Rename a toy', { readOnlyHint: false, destructiveHint: true, idempotentHint: false }],
    ['deleteToy', 'Delete a toy', { readOnlyHint: false, destructiveHint: true, idempotentHint: true }],
  ]);
  expect(tools.find(({ name }: { name: string }) => name === 'renameToy').inputSchema).toMatchObject({
    required: ['toyId', 'name'],
  });
  const use = async (name: string, input: object) => (await call('/mcp', toolCall(name, input))).body.result;
  const { id } = (await use('createToy', { name: 'Kite', idempotencyKey: 'kite' })).structuredContent;
  expect((await use('createToy', { name: 'Kite', idempotencyKey: 'kite' })).structuredContent).toEqual({
    id,
    name: 'Kite',
  });
  expect((await use('renameToy', { toyId: id, name: 'Cube' })).structuredContent).toEqual({
    id,
    name: 'Cube',
  });
  expect(await use('deleteToy', { toyId: id })).toMatchObject({ content: [{ type: 'text', text: 'Done.' }] });
  expect((await use('deleteToy', { toyId: id })).structuredContent).toMatchObject({
    code: 'not_found',
    status: 404,
  });
});

test('what a constraint forbids is an error for the client, over either protocol', async () => {
  const [first, second] = [
    (await rest('createToy', '', post({ name: 'Teddy' }))).body,
    (await rest('createToy', '', post({ name: 'Doll' }))).body,
  ];
  expect(first.name).toBe('Teddy');
  const taken = await rest('renameToy', `/${second.id}`, patch({ name: 'Teddy' }));
  expect(taken.body).toEqual({ code: 'invalid_request', message: 'name is taken.', status: 400 });
  const { data } = (await call('/trpc/renameToy', post({ toyId: second.id, name: 'Teddy' }))).body.error;
  expect(data).toMatchObject({ error: taken.body, fields: { name: 'is taken' } });
});

test('errors, limits and CORS need no code in the resource', async () => {
  expect((await rest('renameToy', '/none', patch({ name: 'Bone' }))).status).toBe(404);
  expect((await rest('renameToy', '/1', patch({ name: 1 }))).body.message).toBe(
    'name must be a string of 1 to 100 characters.',
  );
  expect((await rest('renameToy', '/1', { method: 'PATCH', body: 'name' })).status).toBe(415);
  expect((await rest('deleteToy', '/1', { method: 'PUT' })).headers.get('allow')).toBe(
    'GET, PATCH, DELETE, HEAD',
  );
  const { key } = await service.keys.create({ name: 'limited', ...PERSONAL });
  expect((await rest('deleteToy', '/999', { method: 'DELETE', key })).status).toBe(404);
  expect((await rest('deleteToy', '/999', { method: 'DELETE', key })).status).toBe(429);
  const headers = { origin: 'https://shop.example', 'access-control-request-method': 'PATCH' };
  const preflight = await call('/v1/toys/1', { method: 'OPTIONS', headers });
  expect(preflight.headers.get('access-control-allow-methods')).toBe('POST, GET, HEAD, PATCH, DELETE');
});

test('no operation answers 500 to a body or an identifier that the database cannot store', async () => {
  await expectUnstorableBodiesRejected(checker, call);
  await expectInvalidIdsRejected(checker, call);
});

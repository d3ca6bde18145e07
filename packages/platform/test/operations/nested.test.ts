import { post, rpcPath } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import type { Database } from '../../src/connections/client.js';
import { readCode } from '../../src/connections/outage.js';
import { ApiError } from '../../src/errors/api-error.js';
import { createProcedure } from '../../src/operations/builder.js';
import { assignedId, date, decimal, INPUT_ERROR, int64, text } from '../../src/operations/input.js';
import { answerPage, nestedPageInput, pageOutput } from '../../src/operations/pagination.js';
import type { Resource } from '../../src/operations/resource.js';
import { createInsert } from '../../src/tables/inserts.js';
import { createReads } from '../../src/tables/reads.js';
import { table } from '../../src/tables/table.js';
import {
  existingPath,
  expectInvalidIdsRejected,
  expectUnstorableBodiesRejected,
  ordinaryInit,
} from '../support/document-requests.js';
import { createChecker, type ListedOperation } from '../support/openapi-checker.js';
import { findServers } from '../support/service-role.js';
import { useService } from '../support/test-service.js';

// Rentals of canoes: a resource whose paths name what its items belong to.

const name = text(1, 100).meta({ description: 'Name of the canoe' });
const tags = z
  .array(text(1, 20).meta({ description: 'A word' }))
  .max(5)
  .meta({ description: 'Words to find it by' });
const newCanoe = z
  .object({ name, tags }, { error: INPUT_ERROR })
  .meta({ id: 'NewCanoe', examples: [{ name: 'Emma', tags: ['sloop'] }] });
const canoe = z
  .object({ id: assignedId(), name, tags })
  .meta({ id: 'Canoe', examples: [{ id: 1, name: 'Emma', tags: ['sloop'] }] });
const canoeId = int64().meta({ description: 'Identifier of the canoe' });
const due = date('When it is due');
const fine = decimal(6, 2, 'What a day of delay costs').meta({
  description: 'What a day of delay costs, as 0.50',
});
const newRental = z
  .object({ canoeId, due, fine }, { error: INPUT_ERROR })
  .meta({ id: 'NewRental', examples: [{ due: '2026-02-28', fine: '0.50' }] });
const RENTAL = { id: 1, canoeId: 1, due: '2026-02-28', fine: '0.50' };
const rental = z.object({ id: assignedId(), canoeId, due, fine }).meta({ id: 'Rental', examples: [RENTAL] });
const rentalList = pageOutput(rental).meta({ id: 'Rentals', examples: [[RENTAL]] });
const rentalReference = z.object({
  canoeId,
  rentalId: int64().meta({ description: 'Identifier of the rental' }),
});

type Canoe = z.output<typeof canoe>;
type Rental = z.output<typeof rental>;

const canoeTable = table<Canoe, z.output<typeof newCanoe>>('canoes', {
  id: 'bigint',
  name: 'text',
  tags: 'text[]',
});
const rentalTable = table<Rental, z.output<typeof newRental>>('rentals', {
  id: 'bigint',
  canoeId: 'bigint',
  due: 'date',
  fine: 'decimal',
});
const createHarbourStore = (database: Database) => ({
  addCanoe: createInsert(database, canoeTable),
  getCanoe: createReads(database, canoeTable).get,
  rent: createInsert(database, rentalTable),
  ...createReads(database, rentalTable, { filters: ['canoeId'] }),
});
type HarbourStore = ReturnType<typeof createHarbourStore>;

const FOREIGN_KEY_VIOLATION = '23503';
const procedure = createProcedure<{ readonly harbour: HarbourStore }>();
const meta = { stability: 'beta', scope: 'any' } as const;
const harbour: Resource<HarbourStore> = {
  name: 'harbour',
  description: 'Canoes and their rentals',
  createStore: createHarbourStore,
  procedures: {
    addCanoe: procedure
      .meta({
        ...meta,
        openapi: { method: 'POST', path: '/canoes', summary: 'Add a canoe' },
        success: { status: 201, location: ({ id }: Canoe) => `/canoes/${id}` },
        idempotent: true,
      })
      .input(newCanoe)
      .output(canoe)
      .mutation(({ ctx, input }) => ctx.once((key) => ctx.harbour.addCanoe(input, key))),
    rentCanoe: procedure
      .meta({
        ...meta,
        openapi: { method: 'POST', path: '/canoes/{canoeId}/rentals', summary: 'Rent a canoe' },
        success: { status: 201, location: ({ id, canoeId }: Rental) => `/canoes/${canoeId}/rentals/${id}` },
        idempotent: true,
      })
      .input(newRental)
      .output(rental)
      .mutation(({ ctx, input }) =>
        ctx
          .once((key) => ctx.harbour.rent(input, key))
          .catch((error) => {
            throw readCode(error) === FOREIGN_KEY_VIOLATION ? new ApiError('not_found') : error;
          }),
      ),
    listRentals: procedure
      .meta({
        ...meta,
        openapi: { method: 'GET', path: '/canoes/{canoeId}/rentals', summary: 'List rentals of a canoe' },
      })
      .input(nestedPageInput({ canoeId }, {}))
      .output(rentalList)
      .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.harbour.list(input))),
    getRental: procedure
      .meta({
        ...meta,
        openapi: { method: 'GET', path: '/canoes/{canoeId}/rentals/{rentalId}', summary: 'Get a rental' },
      })
      .input(rentalReference)
      .output(rental)
      .query(async ({ ctx, input: { canoeId, rentalId } }) => {
        const found = await ctx.harbour.get(rentalId);
        if (found?.canoeId !== canoeId) throw new ApiError('not_found');
        return found;
      }),
  },
};

const SETUP = `
  DROP TABLE IF EXISTS rentals, canoes;
  CREATE TABLE canoes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, tags text[] NOT NULL);
  CREATE TABLE rentals (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, canoe_id bigint NOT NULL REFERENCES canoes, due date NOT NULL,
    fine decimal(6, 2) NOT NULL);
  CREATE INDEX ON rentals (canoe_id, id);
  INSERT INTO insert_turns VALUES ('canoes'), ('rentals') ON CONFLICT DO NOTHING;`;

const checker = createChecker([harbour]);
const findListed = (name: string) =>
  checker.operations.find(({ operationId }) => operationId === name) as ListedOperation;

const { call, service } = useService({ resources: [harbour] });

beforeAll(async () => {
  const { name } = findServers().serviceRole;
  await service.database.pool.query(`${SETUP} GRANT SELECT, INSERT, UPDATE ON canoes, rentals TO ${name}`);
});

test('what belongs to something is created under its path, and listed by it, page by page', async () => {
  const canoes = [await call('/v1/canoes', ordinaryInit(findListed('addCanoe')))];
  canoes.push(await call('/v1/canoes', post({ name: 'Persuasion', tags: [] })));
  const [first, second] = canoes.map(({ body }) => body);
  const rent = (id: number, due: string) => call(`/v1/canoes/${id}/rentals`, post({ due, fine: '0.5' }));
  for (const due of ['2026-02-28', '2026-03-31', '2026-04-30']) {
    const rented = await rent(first.id, due);
    expect([rented.status, rented.body]).toEqual([
      201,
      { id: expect.any(Number), canoeId: first.id, due, fine: '0.50' },
    ]);
    await rent(second.id, due);
    const path = rented.headers.get('location')?.replace(/^.*?\/v1/, '/v1') ?? '';
    expect((await call(path)).body).toEqual(rented.body);
  }
  const page = await call(`/v1/canoes/${first.id}/rentals?limit=2`);
  checker.expectDescribed('listRentals', page);
  expect(page.body.map((rental: Rental) => [rental.canoeId, rental.due])).toEqual([
    [first.id, '2026-02-28'],
    [first.id, '2026-03-31'],
  ]);
  const next = /<[^>]*(\/v1\/[^>]*)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
  expect((await call(next)).body).toMatchObject([{ canoeId: first.id, due: '2026-04-30' }]);
  const rpc = await call(rpcPath('listRentals', { canoeId: first.id, limit: 2 }));
  expect(rpc.body.result.data).toEqual(page.body);
});

test('a parent that does not exist is a 404, and what belongs to another one too', async () => {
  expect((await call('/v1/canoes/99999/rentals', post({ due: '2026-02-28', fine: '1' }))).status).toBe(404);
  const path = await existingPath(checker.operations, findListed('getRental'), call);
  expect((await call(`/v1${path}`)).status).toBe(200);
  expect((await call(`/v1${path.replace(/canoes\/\d+/, 'canoes/99999')}`)).status).toBe(404);
  expect((await call('/v1/canoes/x/rentals')).status).toBe(404);
  expect((await call('/v1/canoes//rentals')).status).toBe(404);
});

test('the checks of all operations know such paths', async () => {
  for (const operation of checker.operations) {
    const path = await existingPath(checker.operations, operation, call);
    const response = await call(`/v1${path}`, ordinaryInit(operation));
    expect([operation.operationId, response.status < 300]).toEqual([operation.operationId, true]);
    checker.expectDescribed(operation.operationId, response);
  }
  await expectInvalidIdsRejected(checker, call);
  await expectUnstorableBodiesRejected(checker, call);
});

import { answerPage, type Resource } from '@animal-store/platform/operations';
import { createProcedure } from '../store.js';
import {
  type Boat,
  boat,
  boatChange,
  boatList,
  boatReference,
  boatsPage,
  moveList,
  movesPage,
  newBoat,
} from './schema.js';
import { type BoatStore, createBoatStore, notFound } from './store.js';

const procedure = createProcedure<{ readonly boats: BoatStore }>();

/** What is not there is a 404 that names its id. */
function found<Row>(row: Row | undefined, id: number): Row {
  if (row === undefined) throw notFound(id);
  return row;
}

const listBoats = procedure
  .meta({
    openapi: { method: 'GET', path: '/boats', summary: 'List boats' },
    stability: 'stable',
    scope: 'boats:read',
  })
  .input(boatsPage)
  .output(boatList)
  .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.boats.list(input)));

const createBoat = procedure
  .meta({
    openapi: { method: 'POST', path: '/boats', summary: 'Add a boat' },
    stability: 'stable',
    scope: 'boats:write',
    success: { status: 201, location: ({ id }: Boat) => `/boats/${id}` },
    idempotent: true,
  })
  .input(newBoat)
  .output(boat)
  .mutation(({ ctx, input }) => ctx.once((key) => ctx.boats.create(input, key)));

const getBoat = procedure
  .meta({
    openapi: { method: 'GET', path: '/boats/{boatId}', summary: 'Get a boat' },
    stability: 'stable',
    scope: 'boats:read',
  })
  .input(boatReference)
  .output(boat)
  .query(async ({ ctx, input: { boatId } }) => found(await ctx.boats.get(boatId), boatId));

const updateBoat = procedure
  .meta({
    openapi: { method: 'PATCH', path: '/boats/{boatId}', summary: 'Change a boat' },
    stability: 'beta',
    scope: 'boats:write',
    errors: ['boat_sold'],
  })
  .input(boatChange)
  .output(boat)
  .mutation(async ({ ctx, input }) => found(await ctx.boats.update(input), input.boatId));

const buyBoat = procedure
  .meta({
    openapi: { method: 'POST', path: '/boats/{boatId}/buy', summary: 'Buy a boat' },
    stability: 'experimental',
    scope: 'boats:write',
    errors: ['boat_sold'],
    idempotent: true,
  })
  .input(boatReference)
  .output(boat)
  .mutation(({ ctx, input: { boatId } }) => ctx.once((key) => ctx.boats.buy(boatId, key)));

const listMoves = procedure
  .meta({
    openapi: { method: 'GET', path: '/boats/{boatId}/moves', summary: 'List the moves of a boat' },
    stability: 'beta',
    scope: 'moves:read',
  })
  .input(movesPage)
  .output(moveList)
  .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.boats.listMoves(input)));

export const boats = {
  name: 'boats',
  description: 'The boats of the yard',
  createStore: createBoatStore,
  procedures: { listBoats, createBoat, getBoat, updateBoat, buyBoat, listMoves },
} satisfies Resource<BoatStore>;

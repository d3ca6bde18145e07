import { answerPage, type Resource } from '@animal-store/platform/operations';
import { ApiError, createProcedure } from '../store.js';
import { boat, boatList, boatReference, boatsPage, newBoat } from './schema.js';
import { type BoatStore, createBoatStore } from './store.js';

const procedure = createProcedure<{ readonly boats: BoatStore }>();

const listBoats = procedure
  .meta({
    openapi: { method: 'GET', path: '/boats', summary: 'List boats' },
    stability: 'beta',
    scope: 'boats:read',
  })
  .input(boatsPage)
  .output(boatList)
  .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.boats.list(input)));

const createBoat = procedure
  .meta({
    openapi: { method: 'POST', path: '/boats', summary: 'Add a boat' },
    stability: 'beta',
    scope: 'boats:write',
    success: { status: 201 },
    idempotent: true,
  })
  .input(newBoat)
  .output(boat)
  .mutation(({ ctx, input }) => ctx.once((key) => ctx.boats.create(input, key)));

const buyBoat = procedure
  .meta({
    openapi: { method: 'POST', path: '/boats/{boatId}/buy', summary: 'Buy a boat' },
    stability: 'beta',
    scope: 'boats:write',
    errors: ['boat_sold'],
  })
  .input(boatReference)
  .output(boat)
  .mutation(async ({ ctx, input }) => {
    const sale = await ctx.boats.sell(input.boatId);
    if ('refusal' in sale) throw new ApiError(sale.refusal, { message: `${sale.detail} is sold.` });
    if (sale.output === undefined) throw new ApiError('not_found');
    return sale.output;
  });

export const boats = {
  name: 'boats',
  description: 'The boats of the yard',
  createStore: createBoatStore,
  procedures: { listBoats, createBoat, buyBoat },
} satisfies Resource<BoatStore>;

import { answerPage, type Resource } from '@animal-store/platform/operations';
import { ApiError, createProcedure } from '../store.js';
import {
  newParcel,
  type Parcel,
  parcel,
  parcelChange,
  parcelList,
  parcelReference,
  parcelsPage,
  scanList,
  scansPage,
} from './schema.js';
import { createParcelStore, type ParcelStore } from './store.js';

const procedure = createProcedure<{ readonly parcels: ParcelStore }>();

/** What is not there is a 404 that names its id. */
function found<Row>(row: Row | undefined, id: number): Row {
  if (row === undefined)
    throw new ApiError('not_found', { message: `There is no parcel with the id ${id}.` });
  return row;
}

const listParcels = procedure
  .meta({
    openapi: { method: 'GET', path: '/parcels', summary: 'List parcels' },
    stability: 'stable',
    scope: 'parcels:read',
  })
  .input(parcelsPage)
  .output(parcelList)
  .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.parcels.list(input)));

const createParcel = procedure
  .meta({
    openapi: { method: 'POST', path: '/parcels', summary: 'Keep a parcel' },
    stability: 'stable',
    scope: 'parcels:write',
    success: { status: 201, location: ({ id }: Parcel) => `/parcels/${id}` },
    idempotent: true,
  })
  .input(newParcel)
  .output(parcel)
  .mutation(({ ctx, input }) => ctx.once((key) => ctx.parcels.create(input, key)));

const getParcel = procedure
  .meta({
    openapi: { method: 'GET', path: '/parcels/{parcelId}', summary: 'Get a parcel' },
    stability: 'stable',
    scope: 'parcels:read',
  })
  .input(parcelReference)
  .output(parcel)
  .query(async ({ ctx, input: { parcelId } }) => found(await ctx.parcels.get(parcelId), parcelId));

const updateParcel = procedure
  .meta({
    openapi: { method: 'PATCH', path: '/parcels/{parcelId}', summary: 'Change a parcel' },
    stability: 'beta',
    scope: 'parcels:write',
    errors: ['parcel_collected'],
  })
  .input(parcelChange)
  .output(parcel)
  .mutation(async ({ ctx, input }) => found(await ctx.parcels.update(input), input.parcelId));

const collectParcel = procedure
  .meta({
    openapi: { method: 'POST', path: '/parcels/{parcelId}/collect', summary: 'Collect a parcel' },
    stability: 'experimental',
    scope: 'parcels:write',
    errors: ['parcel_collected'],
  })
  .input(parcelReference)
  .output(parcel)
  .mutation(async ({ ctx, input: { parcelId } }) => found(await ctx.parcels.collect(parcelId), parcelId));

const listScans = procedure
  .meta({
    openapi: { method: 'GET', path: '/parcels/{parcelId}/scans', summary: 'List the scans of a parcel' },
    stability: 'beta',
    scope: 'scans:read',
  })
  .input(scansPage)
  .output(scanList)
  .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.parcels.listScans(input)));

export const parcels = {
  name: 'parcels',
  description: 'Parcels that wait to be collected',
  createStore: createParcelStore,
  procedures: { listParcels, createParcel, getParcel, updateParcel, collectParcel, listScans },
} satisfies Resource<ParcelStore>;

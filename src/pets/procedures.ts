import { answerPage, type Resource } from '@animal-store/platform/operations';
import { ApiError, createProcedure } from '../store.js';
import {
  newPet,
  type Pet,
  type PetReference,
  pet,
  petChange,
  petList,
  petReference,
  petsPage,
} from './schema.js';
import { createPetStore, type PetStore } from './store.js';

const procedure = createProcedure<{ readonly pets: PetStore }>();

const listPets = procedure
  .meta({
    openapi: {
      method: 'GET',
      path: '/pets',
      summary: 'List animals',
      description: 'A page of animals: by ascending id, or with `order=newest` by descending id.',
      successDescription: 'The animals of the page',
    },
    stability: 'stable',
    scope: 'pets:read',
    tool: {
      description:
        'Finds animals by `status` (only available ones can be ordered), by `categoryId`, or by both; without either, all ' +
        'animals. listCategories tells the `categoryId` of birds, for example. The oldest come first, or with an `order` of ' +
        '`newest` the newest.',
    },
  })
  .input(petsPage)
  .output(petList)
  .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.pets.list(input)));

const createPet = procedure
  .meta({
    openapi: {
      method: 'POST',
      path: '/pets',
      summary: 'Add an animal',
      description: 'Adds an animal to the catalogue.',
      successDescription: 'The added animal',
    },
    stability: 'stable',
    scope: 'pets:write',
    success: { status: 201, location: ({ id }: Pet) => `/pets/${id}` },
    idempotent: true,
  })
  .input(newPet)
  .output(pet)
  .mutation(({ ctx, input }) => ctx.once((key) => ctx.pets.create(input, key)));

const missing = ({ petId }: PetReference) =>
  new ApiError('not_found', { message: `There is no pet with the id ${petId}.` });

const getPet = procedure
  .meta({
    openapi: {
      method: 'GET',
      path: '/pets/{petId}',
      summary: 'Get one animal',
      description:
        'Fetches one animal by its identifier. `GET /pets` with the `status` filter replaces this operation. To find one ' +
        'animal there, send a `limit` of 1 and the identifier minus one as the `cursor`. The response has that animal. If there is ' +
        'none, it has the next one by id, or is an empty array, so compare the id.',
      successDescription: 'The animal',
    },
    stability: 'stable',
    scope: 'pets:read',
    deprecation: {
      since: new Date('2025-12-05T00:00:00Z'),
      removal: new Date('2030-12-05T00:00:00Z'),
      successor: '/pets',
    },
  })
  .input(petReference)
  .output(pet)
  .query(async ({ ctx, input }) => {
    const found = await ctx.pets.get(input.petId);
    if (found === undefined) throw missing(input);
    return found;
  });

const updatePet = procedure
  .meta({
    openapi: {
      method: 'PATCH',
      path: '/pets/{petId}',
      summary: 'Change an animal',
      description:
        'Changes the members of an animal that are sent, and leaves the others as they are. Any status may follow any ' +
        'other, but while the animal has an open order, only the order can change its status (updateOrder). ' +
        'With `expectedStatus`, nothing changes if the animal has a different status by then. ' +
        'Programs that keep a copy of the catalogue do not notice the change, because the animal keeps its id.\n\n' +
        'Experimental: it may change within this version.',
      successDescription: 'The animal as it is now',
    },
    stability: 'experimental',
    scope: 'pets:write',
    errors: ['pet_status_changed', 'pet_has_open_order'],
    tool: { idempotentHint: true },
  })
  .input(petChange)
  .output(pet)
  .mutation(async ({ ctx, input }) => {
    const changed = await ctx.pets.update(input);
    if (changed === undefined) throw missing(input);
    return changed;
  });

export const pets = {
  name: 'pets',
  description: 'The animals of the catalogue',
  createStore: createPetStore,
  procedures: { listPets, createPet, getPet, updatePet },
} satisfies Resource<PetStore>;

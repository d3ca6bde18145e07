import { ApiError } from '../errors.js';
import { procedure } from '../trpc.js';
import { getPetDeprecation } from './deprecation.js';
import { readIdempotencyKey } from './idempotency.js';
import { newPet, newPetHeaders, pet, petReference, pets, petsPage } from './schema.js';

export const listPets = procedure
  .meta({
    openapi: {
      method: 'GET',
      path: '/pets',
      tags: ['pets'],
      summary: 'List animals',
      description:
        'A page of animals by ascending id. While more follow, `Link` carries the address of the next page.',
      successDescription: 'The animals of the page',
    },
    stability: 'stable',
  })
  .input(petsPage)
  .output(pets)
  .query(async ({ ctx, input }) => {
    const page = await ctx.pets.list(input);
    const last = page.pets.at(-1);
    if (page.more && last !== undefined) ctx.rest?.nextPage(last.id);
    return page.pets;
  });

export const createPet = procedure
  .meta({
    openapi: {
      method: 'POST',
      path: '/pets',
      tags: ['pets'],
      summary: 'Add an animal',
      description:
        'Adds an animal. With an Idempotency-Key it is safe to send again when the answer was lost.',
      requestHeaders: newPetHeaders,
      successDescription: 'The animal as it was added',
    },
    stability: 'stable',
  })
  .input(newPet)
  .output(pet)
  .mutation(async ({ ctx, input, batchIndex = 0 }) => {
    const idempotencyKey = readIdempotencyKey(ctx, batchIndex);
    const { pet, isReplay } = await ctx.pets.create(input, idempotencyKey, ctx.now());
    ctx.noteCreate(isReplay);
    ctx.rest?.created(`/pets/${pet.id}`);
    return pet;
  });

export const getPet = procedure
  .meta({
    openapi: {
      method: 'GET',
      path: '/pets/{petId}',
      tags: ['pets'],
      summary: 'Get one animal',
      description: 'Fetches one animal by its identifier. `GET /pets` with its status filter replaces it.',
      successDescription: 'The animal',
      deprecated: true,
    },
    stability: 'stable',
    deprecation: getPetDeprecation,
  })
  .input(petReference)
  .output(pet)
  .query(async ({ ctx, input }) => {
    const found = await ctx.pets.get(input.petId);
    if (found === undefined) throw new ApiError('not_found', `There is no pet with the id ${input.petId}.`);
    return found;
  });

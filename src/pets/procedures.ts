import { ApiError } from '../errors.js';
import { procedure } from '../trpc.js';
import { newPet, pet, petReference, pets, petsPage } from './schema.js';

export const listPets = procedure
  .meta({ openapi: { method: 'GET', path: '/pets', summary: 'List animals' } })
  .input(petsPage)
  .output(pets)
  .query(async ({ ctx, input }) => {
    const page = await ctx.pets.list(input);
    const last = page.pets.at(-1);
    if (page.more && last !== undefined) ctx.rest?.nextPage(last.id);
    return page.pets;
  });

export const createPet = procedure
  .meta({ openapi: { method: 'POST', path: '/pets', summary: 'Add an animal' } })
  .input(newPet)
  .output(pet)
  .mutation(async ({ ctx, input }) => {
    const created = await ctx.pets.create(input);
    ctx.rest?.created(`/pets/${created.id}`);
    return created;
  });

export const getPet = procedure
  .meta({ openapi: { method: 'GET', path: '/pets/{petId}', summary: 'Get one animal', deprecated: true } })
  .input(petReference)
  .output(pet)
  .query(async ({ ctx, input }) => {
    const found = await ctx.pets.get(input.petId);
    if (found === undefined) throw new ApiError('not_found', `There is no pet with the id ${input.petId}.`);
    return found;
  });

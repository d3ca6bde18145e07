import { answerPage, type Resource } from '@animal-store/platform/operations';
import { createProcedure } from '../store.js';
import { categoriesPage, category, categoryList, categoryName } from './schema.js';
import { type CategoryStore, createCategoryStore } from './store.js';

const procedure = createProcedure<{ readonly categories: CategoryStore }>();

const listCategories = procedure
  .meta({
    openapi: {
      method: 'GET',
      path: '/categories',
      summary: 'List categories',
      description:
        'A page of the categories that have a name: by ascending id, or with `order=newest` by descending id. An animal may ' +
        'be of a category without a name.\n\nWhoever names a category chooses its id, so a reader that goes on from the last ' +
        'id misses those below it: read all pages again.\n\nExperimental: it may change within this version.',
      successDescription: 'The categories of the page',
    },
    stability: 'experimental',
    scope: 'pets:read',
    tool: {
      description:
        'The names of categories, such as birds. The `id` of a category is the `categoryId` of listPets and createPet.',
    },
  })
  .input(categoriesPage)
  .output(categoryList)
  .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.categories.list(input)));

const nameCategory = procedure
  .meta({
    openapi: {
      method: 'PUT',
      path: '/categories/{categoryId}',
      summary: 'Name a category',
      description:
        'Gives a category a name, or a new name. Repeating the call changes nothing further.\n\n' +
        'Experimental: it may change within this version.',
      successDescription: 'The category as it is now',
    },
    stability: 'experimental',
    scope: 'pets:write',
  })
  .input(categoryName)
  .output(category)
  .mutation(({ ctx, input }) => ctx.categories.setName(input));

export const categories = {
  name: 'categories',
  description: 'The names of categories of animals',
  createStore: createCategoryStore,
  procedures: { listCategories, nameCategory },
} satisfies Resource<CategoryStore>;

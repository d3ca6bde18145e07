import {
  assignedId,
  INPUT_ERROR,
  pageInput,
  pageOrder,
  pageOutput,
  text,
} from '@animal-store/platform/operations';
import { z } from 'zod';

const EXAMPLE = { id: 3, name: 'Birds' } as const;

const MAX_NAME_LENGTH = 200;
const name = text(1, MAX_NAME_LENGTH);
const categoryId = assignedId().meta({
  description: 'Identifier of the category: the `categoryId` of its animals',
  examples: [EXAMPLE.id],
});

export const category = z
  .object({
    id: assignedId().meta({ description: 'Identifier of the category: the `categoryId` of its animals' }),
    name: name.meta({ description: `The category's name: 1 to ${MAX_NAME_LENGTH} Unicode code points` }),
  })
  .meta({ id: 'Category', description: 'A category that has a name', examples: [EXAMPLE] });

export const categoryList = pageOutput(category).meta({
  id: 'Categories',
  description: 'Categories by ascending id, or the highest first',
  examples: [[EXAMPLE]],
});

export const categoriesPage = pageInput({ order: pageOrder() });

export const categoryName = z
  .object(
    {
      categoryId,
      name: name.meta({
        description: `The category's name: 1 to ${MAX_NAME_LENGTH} Unicode code points, kept as sent. Not only white space, and without NUL or half of a surrogate pair.`,
      }),
    },
    { error: INPUT_ERROR },
  )
  .meta({
    id: 'CategoryName',
    description: 'A name for a category. Unknown members are ignored.',
    examples: [{ name: EXAMPLE.name }],
  });

export type Category = z.output<typeof category>;
export type CategoryName = z.output<typeof categoryName>;

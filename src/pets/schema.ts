import {
  assignedId,
  fieldError,
  INPUT_ERROR,
  int64,
  pageInput,
  pageOrder,
  pageOutput,
  text,
} from '@animal-store/platform/operations';
import { z } from 'zod';

const MAX_NAME_LENGTH = 200;
const EXAMPLE = { id: 7, name: 'Rex', categoryId: 3, status: 'available' } as const;
const STATUSES = ['available', 'pending', 'sold'] as const;

const petStatus = z
  .enum(STATUSES, { error: fieldError(`must be one of ${STATUSES.join(', ')}`) })
  .meta({ id: 'PetStatus', description: 'Availability of an animal' });

const petName = text(1, MAX_NAME_LENGTH);

const categoryId = int64().meta({
  description:
    'Identifier of the category the animal belongs to. The service stores any identifier without checking it. ' +
    'listCategories returns the names of categories.',
});

const sentName = petName.meta({
  description: `The animal's name: 1 to ${MAX_NAME_LENGTH} Unicode code points, kept as sent. Not only white space, and without NUL or half of a surrogate pair.`,
});

export const newPet = z
  .object(
    {
      name: sentName,
      categoryId,
      status: petStatus.default('available').meta({ description: 'Availability of the animal' }),
    },
    { error: INPUT_ERROR },
  )
  .meta({
    id: 'NewPet',
    description: 'An animal to add. Unknown members are ignored.',
    examples: [{ name: EXAMPLE.name, categoryId: EXAMPLE.categoryId, status: EXAMPLE.status }],
  });

export const pet = z
  .object({
    id: assignedId().meta({
      description: 'Unique identifier, assigned by the service: positive and increasing',
    }),
    name: petName.meta({ description: `The animal's name: 1 to ${MAX_NAME_LENGTH} Unicode code points` }),
    categoryId,
    status: petStatus,
  })
  .meta({ id: 'Pet', description: 'An animal of the catalogue', examples: [EXAMPLE] });

export const petList = pageOutput(pet).meta({
  id: 'Pets',
  description: 'Animals by ascending id, or the newest first',
  examples: [[EXAMPLE]],
});

export const petReference = z.object(
  { petId: int64().meta({ description: 'Identifier of the animal', examples: [EXAMPLE.id] }) },
  { error: INPUT_ERROR },
);

/** Not `newPet.partial()`, which would keep the default, and reset a status that is left out. */
const changes = {
  name: sentName.exactOptional(),
  categoryId: categoryId.exactOptional(),
  status: petStatus.meta({ description: 'Availability of the animal' }).exactOptional(),
};

const CHANGES = Object.keys(changes);
const CHANGES_TEXT = new Intl.ListFormat('en-GB').format(CHANGES);

export const petChange = petReference
  .extend({
    ...changes,
    expectedStatus: petStatus
      .meta({
        description:
          'The status that the animal had when it was read. If it is different by now, nothing is changed.',
      })
      .exactOptional(),
  })
  .refine((change) => CHANGES.some((member) => member in change), {
    error: `At least one of ${CHANGES_TEXT} is required`,
  })
  .meta({
    id: 'PetChange',
    override: { minProperties: 1 },
    description: `Changes to an animal: at least one of ${CHANGES_TEXT}. Omitted members stay as they are. Unknown members are ignored.`,
    examples: [{ status: 'sold' }],
  });

export const petsPage = pageInput({
  status: petStatus.meta({ description: 'Filter by availability' }).optional(),
  categoryId: int64()
    .meta({ description: 'Filter by category', examples: [EXAMPLE.categoryId] })
    .optional(),
  order: pageOrder(' (experimental)'),
});

export type NewPet = z.output<typeof newPet>;
export type Pet = z.output<typeof pet>;
export type PetChange = z.output<typeof petChange>;
export type PetReference = z.output<typeof petReference>;

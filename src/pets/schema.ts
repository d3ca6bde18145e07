import { z } from 'zod';
import { assignedId, fieldError, INPUT_ERROR, int64 } from '../input.js';
import { pageInput } from '../pagination.js';

const MAX_NAME_LENGTH = 200;
/** With the u flag, a complete pair is one code point, which does not match. */
const LONE_SURROGATE = /\p{Surrogate}/u;
const BLANK = /^\p{White_Space}*$/u;
/**
 * The checks of petName as a pattern for JSON Schema. White space is spelled out, because few validators know
 * \p{White_Space}.
 */
const NAME_PATTERN =
  '^[^\\u0000]*[^\\u0000\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000][^\\u0000]*$';
const NAME_SCHEMA = { minLength: 1, maxLength: MAX_NAME_LENGTH, pattern: NAME_PATTERN } as const;
const EXAMPLE = { id: 7, name: 'Rex', categoryId: 3, status: 'available' } as const;
const STATUSES = ['available', 'pending', 'sold'] as const;

const petStatus = z
  .enum(STATUSES, { error: fieldError(`must be one of ${STATUSES.join(', ')}`) })
  .meta({ id: 'PetStatus', description: 'Availability of an animal' });

/** 1 to 200 Unicode code points, kept as sent. PostgreSQL stores neither a NUL nor a lone surrogate. */
const petName = z
  .string({ error: fieldError(`must be a string of 1 to ${MAX_NAME_LENGTH} characters`) })
  .refine(hasNameLength, { abort: true, error: `must have 1 to ${MAX_NAME_LENGTH} characters` })
  .refine((name) => !LONE_SURROGATE.test(name), {
    abort: true,
    error: 'must not contain half of a surrogate pair',
  })
  .refine((name) => !name.includes('\0'), { abort: true, error: 'must not contain a NUL character' })
  .refine((name) => !BLANK.test(name), { error: 'must not be white space only' })
  .meta({
    description: `The animal's name: 1 to ${MAX_NAME_LENGTH} Unicode code points, not only white space, kept as sent`,
    override: NAME_SCHEMA,
  });

/** A code point is one or two UTF-16 units, so that most names need no counting. */
function hasNameLength(name: string): boolean {
  if (name.length <= MAX_NAME_LENGTH) return name.length > 0;
  return name.length <= MAX_NAME_LENGTH * 2 && [...name].length <= MAX_NAME_LENGTH;
}

const categoryId = int64().meta({ description: 'Identifier of the category the animal belongs to' });

/** For a partial update, list the members again: `partial()` keeps the default, and would reset the status. */
export const newPet = z
  .object({ name: petName, categoryId, status: petStatus.default('available') }, { error: INPUT_ERROR })
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
    name: z.string().meta({ description: "The animal's name", override: NAME_SCHEMA }),
    categoryId,
    status: petStatus,
  })
  .meta({ id: 'Pet', description: 'An animal of the catalogue', examples: [EXAMPLE] });

export const petList = z
  .array(pet)
  .meta({ id: 'Pets', description: 'Animals in ascending order of id', examples: [[EXAMPLE]] });

export const petReference = z.object(
  { petId: int64().meta({ description: 'Identifier of the animal to retrieve', examples: [EXAMPLE.id] }) },
  { error: INPUT_ERROR },
);

export const petsPage = pageInput({
  status: petStatus.meta({ description: 'Filter by availability' }).optional(),
});

export type NewPet = z.output<typeof newPet>;
export type Pet = z.output<typeof pet>;
export type PetsPage = z.output<typeof petsPage>;

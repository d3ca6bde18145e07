import { z } from 'zod';
import { describeFault, int64, integer } from '../integer.js';

const NAME_MAX = 200;
const BLANK = /^\p{White_Space}*$/u;
const STATUSES = ['available', 'pending', 'sold'] as const;

const petStatus = z.enum(STATUSES, { error: describeFault(`must be one of ${STATUSES.join(', ')}`) });

/** 1 to 200 Unicode code points, kept as sent; one of white space only, with a NUL or a lone surrogate is refused. */
const petName = z
  .string({ error: describeFault(`must be a string of 1 to ${NAME_MAX} characters`) })
  .refine(hasNameLength, { abort: true, error: `must have 1 to ${NAME_MAX} characters` })
  .refine((name) => name.isWellFormed(), { abort: true, error: 'must not contain half of a surrogate pair' })
  .refine((name) => !name.includes('\0'), { abort: true, error: 'must not contain a NUL character' })
  .refine((name) => !BLANK.test(name), { error: 'must not be white space only' });

/** UTF-16 units bound code points from both sides, so that only names near the limit are counted. */
function hasNameLength(name: string): boolean {
  if (name.length <= NAME_MAX) return name.length > 0;
  return name.length <= NAME_MAX * 2 && [...name].length <= NAME_MAX;
}

const BODY_FAULT = 'The input must be a JSON object';

export const newPet = z.object(
  { name: petName, categoryId: int64(), status: petStatus.default('available') },
  { error: BODY_FAULT },
);

export const pet = z.object({ id: int64(), name: z.string(), categoryId: int64(), status: z.enum(STATUSES) });

export const pets = z.array(pet);

export const petReference = z.object({ petId: int64() }, { error: BODY_FAULT });

export const petsPage = z
  .object(
    { limit: integer(1, 100).default(20), status: petStatus.optional(), cursor: int64().optional() },
    { error: BODY_FAULT },
  )
  .prefault({});

export type NewPet = z.output<typeof newPet>;
export type Pet = z.output<typeof pet>;
export type PetsPage = z.output<typeof petsPage>;

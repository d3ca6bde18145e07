import { z } from 'zod';
import { assignedId, describeFault, INPUT_FAULT, int64, integer } from '../input.js';
import { MAX_PAGE_SIZE } from '../protocol.js';

const NAME_MAX = 200;
/** Of a pair, both halves are one code point to a pattern with the u flag. */
const LONE_SURROGATE = /\p{Surrogate}/u;
const BLANK = /^\p{White_Space}*$/u;
/** What the checks below say, for JSON Schema: spelled out, because few readers of it know \p{White_Space}. */
const NAME_PATTERN =
  '^[^\\u0000]*[^\\u0000\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000][^\\u0000]*$';
const NAME_SCHEMA = { minLength: 1, maxLength: NAME_MAX, pattern: NAME_PATTERN } as const;
const EXAMPLE = { id: 7, name: 'Rex', categoryId: 3, status: 'available' } as const;
const STATUSES = ['available', 'pending', 'sold'] as const;

const petStatus = z
  .enum(STATUSES, { error: describeFault(`must be one of ${STATUSES.join(', ')}`) })
  .meta({ id: 'PetStatus', description: 'Availability of an animal' });

/** 1 to 200 Unicode code points, kept as sent; one of white space only, with a NUL or a lone surrogate is refused. */
const petName = z
  .string({ error: describeFault(`must be a string of 1 to ${NAME_MAX} characters`) })
  .refine(hasNameLength, { abort: true, error: `must have 1 to ${NAME_MAX} characters` })
  .refine((name) => !LONE_SURROGATE.test(name), {
    abort: true,
    error: 'must not contain half of a surrogate pair',
  })
  .refine((name) => !name.includes('\0'), { abort: true, error: 'must not contain a NUL character' })
  .refine((name) => !BLANK.test(name), { error: 'must not be white space only' })
  .meta({
    description: `The animal's name: 1 to ${NAME_MAX} Unicode code points, not only white space, kept as sent`,
    override: NAME_SCHEMA,
  });

/** UTF-16 units bound code points from both sides, so that only names near the limit are counted. */
function hasNameLength(name: string): boolean {
  if (name.length <= NAME_MAX) return name.length > 0;
  return name.length <= NAME_MAX * 2 && [...name].length <= NAME_MAX;
}

const categoryId = int64().meta({ description: 'Identifier of the category the animal belongs to' });

export const newPet = z
  .object({ name: petName, categoryId, status: petStatus.default('available') }, { error: INPUT_FAULT })
  .meta({
    id: 'NewPet',
    description: 'An animal to add. Members that are not listed are ignored.',
    examples: [{ name: EXAMPLE.name, categoryId: EXAMPLE.categoryId, status: EXAMPLE.status }],
  });

/** For the OpenAPI document; the header itself belongs to both faces. */
export const newPetHeaders = z.object({
  'Idempotency-Key': z
    .string()
    .min(1)
    .max(255)
    .regex(/^[!-~]+$/)
    .meta({
      description:
        'Makes the request safe to repeat: for 24 hours the same key with the same body answers what the first answered.',
      examples: ['c0ffee00-5f0e-4c9b-9e0f-2f4f3c1b7a10'],
    })
    .optional(),
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

export const pets = z
  .array(pet)
  .meta({ id: 'Pets', description: 'Animals in ascending order of id', examples: [[EXAMPLE]] });

export const petReference = z.object(
  { petId: int64().meta({ description: 'Identifier of the animal to retrieve', examples: [EXAMPLE.id] }) },
  { error: INPUT_FAULT },
);

export const petsPage = z
  .object(
    {
      limit: integer(1, MAX_PAGE_SIZE)
        .default(20)
        .meta({ description: 'Maximum number of animals to return' }),
      status: petStatus.meta({ description: 'Filter by availability' }).optional(),
      cursor: int64()
        .meta({
          description: 'The id of the last animal of the page before; `Link` carries it',
          examples: [20],
        })
        .optional(),
    },
    { error: INPUT_FAULT },
  )
  .prefault({});

export type NewPet = z.output<typeof newPet>;
export type Pet = z.output<typeof pet>;
export type PetsPage = z.output<typeof petsPage>;

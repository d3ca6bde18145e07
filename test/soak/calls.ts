import { PET_COUNT, type Pet, REJECTED_NAME, STATUSES, seededIds } from './catalogue.js';
import type { Creation, Ledger } from './ledger.js';
import { pick, random, randomInteger } from './random.js';

/** A call of an operation, over REST or tRPC, and how to recognise the right output. */
export interface Call {
  readonly operation: 'listPets' | 'getPet' | 'createPet';
  readonly input: Readonly<Record<string, unknown>>;
  /** Returns what is wrong with the output of a call that succeeded. */
  check(output: unknown): string | undefined;
  /** Returns what is wrong with the headers that only REST has, beside a right output. */
  checkHeaders(headers: NodeJS.Dict<string | string[]>, output: unknown): string | undefined;
  /** Called when the response was lost or a 503. */
  readonly noteLost?: () => void;
  /** Whether PostgreSQL rejects it, which the service does not expect: a 500 */
  readonly isRejected?: boolean;
}

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;
/** Names end in these, because the service must neither interpret nor change them on their way to PostgreSQL. */
const NAME_ENDS = [
  '',
  ' "Rex"',
  " O'Hara",
  ' {a,b}',
  ' \\n\\',
  ' NULL',
  ',',
  '\n',
  '\t',
  '  ',
  ' $1',
  ' 🐕‍🦺',
];

export function listPets(ledger: Ledger): Call {
  // Every tenth page also shows pets that are being created.
  const last = ledger.ids.at(-1) ?? PET_COUNT;
  const cursor = random() < 0.1 ? randomInteger(PET_COUNT - 50, last) : randomInteger(0, PET_COUNT);
  const limit = pick([undefined, randomInteger(1, MAX_LIMIT)]);
  const status = pick([undefined, pick(STATUSES)]);
  const size = limit ?? DEFAULT_LIMIT;
  const expected = seededIds(cursor, size, status);
  return {
    operation: 'listPets',
    input: { cursor, ...(limit !== undefined && { limit }), ...(status !== undefined && { status }) },
    check(output) {
      if (!Array.isArray(output) || output.length > size) return `this is not a page of at most ${size}`;
      const pets: readonly Pet[] = output;
      if (expected.some((id, index) => pets[index]?.id !== id)) return 'pets are missing on this page';
      let previous = cursor;
      for (const pet of pets) {
        if (pet.id <= previous) return `pet ${pet.id} is not after ${previous}`;
        if (status !== undefined && pet.status !== status) return `pet ${pet.id} has another status`;
        const problem = ledger.check(pet);
        if (problem !== undefined) return problem;
        previous = pet.id;
      }
      return undefined;
    },
    checkHeaders({ link }, output) {
      const pets = output as readonly Pet[];
      const next = /[?&]cursor=(\d+)[^>]*>; rel="next"/.exec(String(link))?.[1];
      const hasMore = expected.length === size && (expected.at(-1) ?? 0) + STATUSES.length <= PET_COUNT;
      if (next === undefined) return hasMore ? 'Link does not lead to the next page' : undefined;
      const isRight = pets.length === size && Number(next) === pets.at(-1)?.id;
      return isRight ? undefined : 'Link leads to another page than the next';
    },
  };
}

export function getPet(ledger: Ledger): Call {
  const petId = ledger.ids.length > 0 && random() < 0.3 ? pick(ledger.ids) : randomInteger(1, PET_COUNT);
  return {
    operation: 'getPet',
    input: { petId },
    check: (output) =>
      (output as Pet).id === petId ? ledger.check(output) : 'this is not the pet that was asked for',
    checkHeaders: () => undefined,
  };
}

let created = 0;

export function createPet(ledger: Ledger, { hasKey = false, isRejected = false } = {}): Call {
  created += 1;
  const name = `${isRejected ? REJECTED_NAME : 'soak '}${created}${pick(NAME_ENDS)}`;
  const categoryId = pick([0, randomInteger(1, 1_000), Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]);
  const status = pick([undefined, ...STATUSES]);
  const creation: Creation = ledger.add({ name, categoryId, status: status ?? 'available' }, hasKey);
  return {
    operation: 'createPet',
    input: { name, categoryId, ...(status !== undefined && { status }) },
    check: (output) => ledger.acknowledge(creation, output),
    checkHeaders: ({ location }, output) =>
      location === `/v1/pets/${(output as Pet).id}` ? undefined : 'Location is not that of the pet',
    noteLost: () => {
      creation.mayBeStored = true;
    },
    isRejected,
  };
}

import { isDeepStrictEqual } from 'node:util';
import { type Call, checkNextLink, DEFAULT_LIMIT, MAX_LIMIT, noteAll } from './call.js';
import {
  LAST_SEEDED,
  PET_COUNT,
  type Pet,
  pickForSale,
  REJECTED_NAME,
  SALE_IDS,
  STATUSES,
  seededIds,
} from './catalogue.js';
import type { Creation, Ledger } from './ledger.js';
import { pick, random, randomInteger } from './random.js';
import type { PetValues } from './sales.js';

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
  const last = ledger.ids.at(-1) ?? LAST_SEEDED;
  const cursor = random() < 0.1 ? randomInteger(PET_COUNT - 50, last) : randomInteger(0, PET_COUNT);
  const limit = pick([undefined, randomInteger(1, MAX_LIMIT)]);
  const status = pick([undefined, pick(STATUSES)]);
  const size = limit ?? DEFAULT_LIMIT;
  const expected = seededIds(cursor, size, status);
  return {
    operation: 'listPets',
    input: { cursor, ...(limit !== undefined && { limit }), ...(status !== undefined && { status }) },
    check(output, sentAt) {
      if (!Array.isArray(output) || output.length > size) return `this is not a page of at most ${size}`;
      const pets: readonly Pet[] = output;
      if (expected.some((id, index) => pets[index]?.id !== id)) return 'pets are missing on this page';
      let previous = cursor;
      for (const pet of pets) {
        if (pet.id <= previous) return `pet ${pet.id} is not after ${previous}`;
        if (status !== undefined && pet.status !== status) return `pet ${pet.id} has another status`;
        const problem = ledger.check(pet, sentAt);
        if (problem !== undefined) return problem;
        previous = pet.id;
      }
      return undefined;
    },
    checkHeaders(headers, output) {
      const ids = (output as readonly Pet[]).map(({ id }) => id);
      const hasMore = expected.length === size && (expected.at(-1) ?? 0) + STATUSES.length <= PET_COUNT;
      return checkNextLink(headers, ids, { size, hasMore });
    },
  };
}

export function getPet(ledger: Ledger): Call {
  const ids = pick([ledger.ids, SALE_IDS]);
  const petId = ids.length > 0 && random() < 0.5 ? pick(ids) : randomInteger(1, PET_COUNT);
  return {
    operation: 'getPet',
    input: { petId },
    check: (output, sentAt) =>
      (output as Pet).id === petId ? ledger.check(output, sentAt) : 'this is not the pet that was asked for',
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

let changed = 0;

/** Changes some members of an animal for sale, now and then only if it has the expected status. */
export function updatePet({ sales }: Ledger): Call {
  changed += 1;
  const petId = pickForSale();
  const all = {
    name: `changed ${changed}${pick(NAME_ENDS)}`,
    categoryId: randomInteger(1, 1_000),
    // What is sold comes back, so that there is something to order.
    status: pick(['available', 'available', 'available', 'pending', 'sold'] as const),
  };
  const members = pick([['name'], ['categoryId'], ['status'], ['name', 'status'], Object.keys(all)]);
  const change: PetValues = Object.fromEntries(
    Object.entries(all).filter(([name]) => members.includes(name)),
  );
  const { status } = sales.pet(petId);
  const expectedStatus = pick([undefined, undefined, ...STATUSES]);
  const writes = sales.beginPetChange(petId, change);
  return {
    operation: 'updatePet',
    input: { petId, ...change, ...(expectedStatus !== undefined && { expectedStatus }) },
    check(output, sentAt) {
      const pet = output as Pet;
      if (expectedStatus !== undefined && !status.mayBe(expectedStatus, sentAt))
        return 'the animal had not the expected status';
      if (pet.id !== petId) return 'this is another pet than was to be changed';
      if (!isDeepStrictEqual(pet, { ...pet, ...change })) return 'this is not what was sent';
      noteAll(writes, 'acknowledge');
      return sales.checkPet(pet, sentAt);
    },
    checkRefusal(sentAt, code) {
      if (code === 'pet_status_changed') {
        return status.mayHaveBeen((each) => each !== expectedStatus, sentAt)
          ? undefined
          : 'the animal had the expected status';
      }
      return change.status !== undefined && change.status !== 'pending' && status.mayBe('pending', sentAt)
        ? undefined
        : 'the animal had no open order that forbade this';
    },
    noteLost: () => noteAll(writes, 'lose'),
    noteRefused: () => noteAll(writes, 'discard'),
  };
}

import type { NewPet, PetStatus } from '@animal-store/client';
import type { FieldErrors } from './field-errors.js';
import { STATUSES } from './vocabulary.js';

/** The contents of the form, which may not be a valid animal yet. */
export interface Draft {
  readonly name: string;
  /** As chosen or typed */
  readonly categoryId: string;
  /** Whether the category is typed, as none of the known ones */
  readonly isOtherCategory: boolean;
  /** What a typed category is to be called; '' leaves its name as it is */
  readonly categoryName: string;
  readonly status: PetStatus;
}

export const BLANK: Draft = {
  name: '',
  categoryId: '',
  isOtherCategory: false,
  categoryName: '',
  status: STATUSES[0] ?? 'available',
};

const MAX_NAME_CHARACTERS = 200;

/**
 * Finds what the user has to correct, in all fields at once. The service validates again, and its errors are shown too;
 * these save a request, and know how the form asks for each value.
 */
export function findProblems({ name, categoryId, isOtherCategory }: Draft): FieldErrors {
  const nameProblem = findNameProblem(name);
  const categoryProblem = findCategoryProblem(categoryId.trim(), isOtherCategory);
  return {
    ...(nameProblem === undefined ? {} : { name: nameProblem }),
    ...(categoryProblem === undefined ? {} : { categoryId: categoryProblem }),
  };
}

/** An animal to save, with the Idempotency-Key by which the service recognizes it when it is sent again. */
export interface Save {
  readonly pet: NewPet;
  /** The name to give the category of the animal, if any */
  readonly categoryName: string | undefined;
  readonly idempotencyKey: string;
}

/**
 * Only for a draft without problems. If it is the animal of the save that failed, it is sent with the same key: that
 * save may have arrived, and only its response been lost.
 */
export function createSave(draft: Draft, failed: Save | undefined): Save {
  const { name, categoryId, isOtherCategory, categoryName, status } = draft;
  const pet = { name, categoryId: Number(categoryId), status };
  const isSame = failed !== undefined && JSON.stringify(pet) === JSON.stringify(failed.pet);
  const idempotencyKey = isSame ? failed.idempotencyKey : crypto.randomUUID();
  const isNamed = isOtherCategory && categoryName.trim() !== '';
  return { pet, categoryName: isNamed ? categoryName : undefined, idempotencyKey };
}

function findNameProblem(name: string): string | undefined {
  if (/^\p{White_Space}*$/u.test(name)) return 'Give it a name.';
  const { length } = [...name];
  if (length <= MAX_NAME_CHARACTERS) return undefined;
  return `Use at most ${MAX_NAME_CHARACTERS} characters; these are ${length}.`;
}

function findCategoryProblem(categoryId: string, isOther: boolean): string | undefined {
  if (categoryId === '') return isOther ? 'Type the number of the category.' : 'Choose a category.';
  if (!/^-?\d+$/.test(categoryId)) return 'Type a whole number, such as 12.';
  return Number.isSafeInteger(Number(categoryId)) ? undefined : 'Type a number with fewer digits.';
}

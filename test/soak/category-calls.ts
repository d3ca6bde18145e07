import { isDeepStrictEqual } from 'node:util';
import { type Call, MAX_LIMIT } from './call.js';
import { pick, randomInteger } from './random.js';

const NAMES = ['Dogs', "Lady's birds", ' 🐈 ', 'NULL', '{a,b}'];
/** So few that callers name the same ones at the same time */
const CATEGORIES = 9;

export function nameCategory(): Call {
  const input = { categoryId: randomInteger(1, CATEGORIES), name: pick(NAMES) };
  return {
    operation: 'nameCategory',
    input,
    check: (output) =>
      isDeepStrictEqual(output, { id: input.categoryId, name: input.name })
        ? undefined
        : 'this is not the category with its new name',
  };
}

export function listCategories(): Call {
  return {
    operation: 'listCategories',
    input: { limit: MAX_LIMIT },
    check(output) {
      if (!Array.isArray(output) || output.length > CATEGORIES) return 'these are not the categories';
      const ids = output.map(({ id }) => id);
      if (
        !isDeepStrictEqual(
          ids,
          ids.toSorted((a, b) => a - b),
        )
      )
        return 'the categories are not in order';
      return output.every(({ name }) => NAMES.includes(name)) ? undefined : 'nobody gave this name';
    },
  };
}

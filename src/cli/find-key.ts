import type { ApiKey, KeyStore } from '../keys/store.js';
import { NotFoundError, UsageError } from './exit-codes.js';

/** How many keys an ambiguous id lists. */
const MAX_CANDIDATES = 10;

/**
 * Finds a key by its id or the beginning of it.
 *
 * @throws UsageError when several keys match, NotFoundError when none does
 */
export async function findKey(store: KeyStore, prefix: string): Promise<ApiKey> {
  const found = await store.findByIdPrefix(prefix);
  if (found.length > 1) {
    const candidates = found.slice(0, MAX_CANDIDATES).map(({ id, name }) => `\n  ${id}  ${name}`);
    const more = found.length > MAX_CANDIDATES ? '\n  …' : '';
    throw new UsageError(
      `The ids of ${found.length} keys start with ${prefix}:${candidates.join('')}${more}`,
    );
  }
  return expectFound(prefix, found[0]);
}

/** For the result of an update: the key may be gone since it was found. @throws NotFoundError */
export function expectFound<T>(id: string, found: T | undefined): T {
  if (found === undefined)
    throw new NotFoundError(`There is no key with the id ${id}: "keys list" shows all.`);
  return found;
}

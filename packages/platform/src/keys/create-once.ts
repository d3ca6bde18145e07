import { createHash } from 'node:crypto';
import { readUniqueViolation } from '../connections/outage.js';
import { type ApiKey, isActive } from './api-key.js';
import type { KeyStore, NewKey } from './store.js';

/** The constraint on the ids of keys */
const PRIMARY_KEY = 'api_keys_pkey';

/**
 * Issues a key unless its owner has a key of this name in use. That one is returned without `key`, which nobody knows any more.
 *
 * The id is a hash of owner, name and how many such ids have been used up. So of several simultaneous calls, the primary key
 * lets one insert its row, and the others find that row.
 */
export async function createOnce(
  store: Pick<KeyStore, 'findByOwner' | 'create'>,
  input: NewKey & { readonly owner: string },
): Promise<{ readonly apiKey: ApiKey; readonly key?: string }> {
  const { owner, name } = input;
  for (let used = 0; ; used += 1) {
    const owned = await store.findByOwner(owner);
    const inUse = owned.find((apiKey) => apiKey.name === name && isActive(apiKey, Date.now()));
    if (inUse !== undefined) return { apiKey: inUse };
    const id = toId(owner, name, used);
    if (owned.some((apiKey) => apiKey.id === id)) continue;
    try {
      return await store.create(input, id);
    } catch (error) {
      if (readUniqueViolation(error) !== PRIMARY_KEY) throw error;
    }
  }
}

/** A UUID of version 8 (RFC 9562, section 5.8). */
function toId(...parts: readonly [owner: string, name: string, used: number]): string {
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest('hex');
  return hash.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/, '$1-$2-8$3-8$4-$5');
}

import type { KeyStore } from '../../src/keys/store.js';

/** Rotates one key. */
export async function rotate(
  keys: Pick<KeyStore, 'rotateAll'>,
  id: string,
  ...how: [overlapEndsAt?: Date, again?: boolean]
) {
  return (await keys.rotateAll([id], ...how)).at(0);
}

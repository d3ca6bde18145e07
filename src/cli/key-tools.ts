import { OperatorError } from '../errors/operator-error.js';
import type { ApiKey, KeyStore, ListedKey } from '../keys/store.js';
import type { UsageStore } from '../keys/usage-store.js';

/** The stores that a command uses, open while it runs. */
export interface KeyTools {
  readonly store: KeyStore;
  readonly usage: UsageStore;
}

/** Opens the tools, and closes them afterwards. */
export type WithKeys = (run: (tools: KeyTools) => Promise<void>) => Promise<void>;

/** Finds a key by its id or the beginning of it. @throws OperatorError unless exactly one matches */
export async function findKey(store: KeyStore, prefix: string): Promise<ListedKey> {
  const found = await store.findByIdPrefix(prefix);
  if (found.length <= 1) return expectFound(prefix, found[0]);
  const candidates = found.map(({ id, name }) => `\n  ${id}  ${name}`).join('');
  throw new OperatorError(`The ids of ${found.length} keys start with ${prefix}:${candidates}`, {
    exitCode: 2,
  });
}

/** For the result of an update: the key may be gone since it was found. @throws OperatorError */
export function expectFound<T>(id: string, found: T | undefined): T {
  if (found !== undefined) return found;
  throw new OperatorError(`There is no key with the id ${id}: "keys list" shows all.`, { exitCode: 3 });
}

/** @throws OperatorError when the key is revoked, which nothing undoes */
export function usableId({ id, revokedAt }: ApiKey): string {
  if (revokedAt === null) return id;
  const advice = 'a revoked key stays so. Issue another with: keys create';
  throw new OperatorError(`The key ${id} is revoked, so nothing was changed: ${advice}`);
}

import { OperatorError } from '../errors/operator-error.js';
import type { ApiKey, KeyStore } from '../keys/store.js';
import type { UsageStore } from '../keys/usage.js';
import type { LimitStatus } from '../limits/rate-limit-result.js';
import type { Operation } from '../operations/list-operations.js';

/** How many keys an ambiguous id lists. */
const MAX_CANDIDATES = 10;

/** The arguments are wrong in a way that only the database shows. */
export class UsageError extends OperatorError {}

/** What the arguments name does not exist. */
export class NotFoundError extends OperatorError {}

/** The stores that a command uses, open while it runs. */
interface KeyTools {
  readonly store: KeyStore;
  readonly usage: UsageStore;
  /** The windows of a key in Redis; undefined without REDIS_URL */
  readonly readWindows: (apiKey: ApiKey) => Promise<readonly LimitStatus[] | undefined>;
}

export interface KeyCommandOptions {
  /** Opens the tools, and closes them afterwards */
  readonly withKeys: (run: (tools: KeyTools) => Promise<void>) => Promise<void>;
  readonly listOperations: () => Promise<readonly Operation[]>;
  readonly write: (text: string) => void;
}

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

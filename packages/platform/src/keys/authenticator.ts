import { createBatchLoader, withTimeout } from '@animal-store/batch-loader';
import { LRUCache } from 'lru-cache';
import { BATCH_CHANNEL } from '../connections/batch-channel.js';
import { detectOutage } from '../connections/outage.js';
import { ApiError, insufficientScope } from '../errors/api-error.js';
import { KEY_LOOKUP_TIMEOUT_MS } from '../timing/timeouts.js';
import { type ApiKey, isActive } from './api-key.js';
import { hashKey, isWellFormedKey, type KeyPrefix, readBearerKey, toHint } from './format.js';
import { createKnownKeys, KEY_TTL_MS } from './known-keys.js';
import type { KeyStore } from './store.js';

/** Unknown keys have a cache of their own, so that a flood of them does not displace known keys. */
const MAX_UNKNOWN_KEYS = 10_000;
/** One statement at a time, for as many keys as are found within a tick of the event loop. */
const BATCHES = {
  maxSize: 50,
  maxConcurrent: 1,
  maxWaitMs: KEY_LOOKUP_TIMEOUT_MS,
  channelName: BATCH_CHANNEL,
};

/** Whose request it is: a key's, nobody's, or unknown while the database is unavailable. */
export type Authentication =
  | { readonly apiKey: ApiKey }
  /** missing_api_key or invalid_api_key */
  | { readonly rejected: ApiError }
  /** Why the key is not known now, and the key as it was last found, however long ago; undefined if it was never found */
  | { readonly unavailable: unknown; readonly lastKnown: ApiKey | undefined };

/** Created once, because they are the same for every request, and the errors have no stack. */
const MISSING_KEY: Authentication = { rejected: new ApiError('missing_api_key') };
const INVALID_KEY: Authentication = { rejected: new ApiError('invalid_api_key') };

export type Authenticator = ReturnType<typeof createAuthenticator>;

export interface AuthenticatorOptions {
  readonly store: Pick<KeyStore, 'findByHashes' | 'findChanged'>;
  readonly prefix: KeyPrefix;
  /** Unix milliseconds */
  readonly now: () => number;
}

/**
 * Finds the key that a header names, with as few queries as the promise about changes allows. For a process, a key is in one
 * of these states:
 *
 * ## Trusted
 * The key was looked up or checked within the last KEY_TTL_MS. No request waits for a query: once a second the database is
 * asked which of the keys in use have changed. It compares what the rows say, so it does not matter who has written to them,
 * in which transaction, or in which database.
 *
 * ## Known, but not trusted
 * The key was found before. Since then it has changed, or was not checked in time, because it was not in use or there was no
 * answer. It is looked up together with other known keys. While the database is unavailable, `lastKnown` still says whose
 * request it is.
 *
 * ## Rejected
 * The key was looked up within the last KEY_TTL_MS, and is not in the database. No query.
 *
 * ## Unknown
 * Any other well-formed key. It is looked up with other unknown keys, apart from known keys, and after them if the client's
 * address is over its limit.
 */
export function createAuthenticator({ store, prefix, now }: AuthenticatorOptions) {
  const known = createKnownKeys(store);
  const { find, isRejected, forget } = createLookups(store, known);
  const ifActive = (apiKey: ApiKey | undefined) =>
    apiKey !== undefined && isActive(apiKey, now()) ? apiKey : undefined;
  const toAuthentication = (found: ApiKey | undefined): Authentication => {
    const apiKey = ifActive(found);
    return apiKey === undefined ? INVALID_KEY : { apiKey };
  };
  const peekStale = (authorization: string | undefined) => {
    if (authorization === undefined) return undefined;
    return known.peek(authorization) ?? known.peek(`Bearer ${readBearerKey(authorization)}`);
  };
  return {
    /**
     * Finds whose request it is by its Authorization header, within KEY_LOOKUP_TIMEOUT_MS. Never rejects.
     *
     * @param isOverLimit whether the client's address is over its limit: then an unknown key is looked up after others
     */
    async authenticate(
      authorization: string | undefined,
      isOverLimit = () => false,
    ): Promise<Authentication> {
      const key = authorization === undefined ? undefined : readBearerKey(authorization);
      if (key === undefined) return MISSING_KEY;
      if (!isWellFormedKey(key, prefix)) return INVALID_KEY;
      try {
        const lookup = Promise.resolve(find(`Bearer ${key}`, key, isOverLimit));
        return toAuthentication(await detectOutage(withTimeout(KEY_LOOKUP_TIMEOUT_MS, lookup)));
      } catch (error) {
        return { unavailable: error, lastKnown: peekStale(authorization) };
      }
    },
    /** Authenticates from the cache alone; undefined when the key has to be looked up. */
    peek(authorization: string | undefined): Authentication | undefined {
      if (authorization === undefined) return MISSING_KEY;
      const found = known.findTrusted(authorization);
      return found === undefined && !isRejected(authorization) ? undefined : toAuthentication(found);
    },
    /** The id of the key if it was valid when it was last found. */
    findKnownId: (authorization: string | undefined) => ifActive(peekStale(authorization))?.id,
    /**
     * Distrusts a key, its predecessor of a rotation, and lookups that are under way, because this process has just
     * changed the key's row.
     */
    forget,
    /** Stops checking keys; call it before the database is closed. */
    close: () => known.close(),
  };
}

/** Looks keys up that are not trusted, each once at a time, with others in one statement. */
function createLookups(store: AuthenticatorOptions['store'], known: ReturnType<typeof createKnownKeys>) {
  // All caches are keyed by the usual form of the header, so that a key in use is neither parsed nor hashed again. Other
  // forms share that entry, because with extra spaces each could be a long entry of its own.
  const unknown = new LRUCache<string, true>({
    maxSize: MAX_UNKNOWN_KEYS,
    sizeCalculation: () => 1,
    ttl: KEY_TTL_MS,
  });
  const pending = new Map<string, Promise<ApiKey | undefined>>();
  /** How often `forget` was called: a lookup that began before a call may not have seen the change */
  let forgotten = 0;
  // Anybody can make up keys that have to be looked up, so known keys have statements of their own.
  const knownLookups = createBatchLoader(store.findByHashes, BATCHES);
  const unknownLookups = createBatchLoader(store.findByHashes, BATCHES);
  const lookUp = async (header: string, key: string, isLast: boolean) => {
    // The key is trusted from when the query was sent: a slow result is already old.
    const confirmedAt = performance.now();
    const forgottenBefore = forgotten;
    const found = await (known.has(header) ? knownLookups : unknownLookups).load(hashKey(key), isLast);
    if (found === undefined) {
      known.delete(header);
      return void unknown.set(header, true, { start: confirmedAt });
    }
    // After a rotation, the row has the hint of the new key, not of this one.
    const apiKey = known.add(header, { ...found, hint: toHint(key) }, confirmedAt);
    if (forgotten !== forgottenBefore) known.distrust(found.id);
    return apiKey;
  };
  const find = (header: string, key: string, isOverLimit: () => boolean) => {
    const apiKey = known.findTrusted(header);
    if (apiKey !== undefined || unknown.has(header)) return apiKey;
    const running =
      pending.get(header) ??
      lookUp(header, key, !known.has(header) && isOverLimit()).finally(() => pending.delete(header));
    pending.set(header, running);
    return running;
  };
  return {
    /** The key, or undefined if there is none: at once while it is trusted or rejected, else from its lookup */
    find,
    /** Whether the key was looked up within the last KEY_TTL_MS, and is not in the database */
    isRejected: (header: string) => unknown.has(header),
    forget(id: string): void {
      forgotten += 1;
      known.distrust(id);
      pending.clear();
    },
  };
}

/** Why a key may not call an operation that needs this scope, or undefined if it may. */
export function findScopeError({ scopes }: Pick<ApiKey, 'scopes'>, scope: string): ApiError | undefined {
  return scope === 'any' || scopes.includes(scope) ? undefined : insufficientScope(scope);
}

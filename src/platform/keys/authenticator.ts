import { LRUCache } from 'lru-cache';
import type { Scope } from '#store/scopes.js';
import { createBatchLoader } from '../batch-loader.js';
import { detectOutage } from '../database/outage.js';
import { ApiError, insufficientScope } from '../errors/api-error.js';
import { repeat } from '../timing/repeat.js';
import { KEY_LOOKUP_TIMEOUT_MS, withTimeout } from '../timing/timeouts.js';
import type { KeyChanges } from './changes.js';
import { hashKey, isWellFormedKey, type KeyPrefix, readBearerKey, toHint } from './format.js';
import { type ApiKey, isActive, type KeyStore } from './store.js';

/**
 * How long a lookup is trusted, and the last answer to which keys have changed. A change to a key, whoever makes it,
 * takes effect on every node within this time plus the length of a request; the contract allows two seconds.
 */
export const KEY_TTL_MS = 1_000;
/**
 * How long a lookup is trusted at most, even if no change is reported: somebody may disable the triggers that report them.
 */
export const MAX_TRUST_MS = 60_000;
/** From when on a key in use is looked up again: at a random moment of this range, so that not all are due at once. */
const REREAD_AFTER_MS = { min: 20_000, spread: 30_000 } as const;
/** How often those that are due are looked up. */
const REREAD_INTERVAL_MS = 1_000;
/** The most keys cached at once, which takes about 54 MB. */
const MAX_KEYS = 100_000;
/** Besides those, so that a flood of unknown keys leaves the others alone. */
const MAX_UNKNOWN_KEYS = 10_000;
/** One statement at a time, for as many keys as are found within a tick of the event loop. */
const BATCHES = { maxSize: 50, maxConcurrent: 1, maxWaitMs: KEY_LOOKUP_TIMEOUT_MS };

/** Whose request it is: a key's, nobody's, or not to be told while the database is unavailable. */
export type Authentication =
  | { readonly apiKey: ApiKey }
  /** missing_api_key or invalid_api_key */
  | { readonly rejected: ApiError }
  /** Why it cannot be told, and the key as it was last found, however long ago; undefined when it is not known */
  | { readonly unavailable: unknown; readonly lastKnown: ApiKey | undefined };

/** Created once: they are the same for every request, and the errors have no stack. */
const MISSING_KEY: Authentication = { rejected: new ApiError('missing_api_key') };
const INVALID_KEY: Authentication = { rejected: new ApiError('invalid_api_key') };

export type Authenticator = ReturnType<typeof createAuthenticator>;

export interface AuthenticatorOptions {
  readonly store: Pick<KeyStore, 'findByHashes'>;
  /** Without them, a key is looked up again whenever its lookup is no longer trusted. */
  readonly changes?: KeyChanges;
  readonly prefix: KeyPrefix;
  /** Unix milliseconds */
  readonly now: () => number;
}

interface KnownKey {
  readonly apiKey: ApiKey;
  /** By performance.now() */
  foundAt: number;
  /** When it is due to be looked up again, by performance.now() */
  readonly rereadAt: number;
  /** Whether a change of it since then would be reported */
  isFollowed: boolean;
}

/**
 * Finds the key that a header names, with as few queries as the promise about changes allows. For a process, a key is in one
 * of these states:
 *
 * ## Trusted
 * It was looked up within the last KEY_TTL_MS, or it is followed: the last answer to which keys have changed is no older than
 * that, and did not name it. No query waits: a key in use is looked up again within MAX_TRUST_MS, for changes that nothing
 * reports, together with the others that are due.
 *
 * ## Known, but not trusted
 * It has been found before, but has changed since, or there was no answer for KEY_TTL_MS. It is looked up together with
 * others of this kind. While the database is unavailable, `lastKnown` still tells whose request it is.
 *
 * ## Rejected
 * It was looked up within the last KEY_TTL_MS, and is not in the database. No query.
 *
 * ## Unknown
 * Anything else that is well-formed. It is looked up with others of this kind, apart from known keys, and after them if its
 * address is over its limit.
 */
export function createAuthenticator({
  store,
  changes = { askedAt: Number.NEGATIVE_INFINITY, answers: 0, onChange() {} },
  prefix,
  now,
}: AuthenticatorOptions) {
  // All are keyed by the usual form of the header, so that a key in use is neither parsed nor hashed again. Other forms
  // share that entry: with extra spaces, each could be 16 KB long and an entry of its own.
  const known = new LRUCache<string, KnownKey>({ max: MAX_KEYS });
  const unknown = new LRUCache<string, true>({ max: MAX_UNKNOWN_KEYS, ttl: KEY_TTL_MS });
  const pending = new Map<string, Promise<ApiKey | undefined>>();
  /** How often `forget` was called: a lookup that began before may not have seen why */
  let forgotten = 0;
  /** The headers of keys in use that are due to be looked up again */
  const due = new Set<string>();
  // Anybody can make up keys that have to be looked up, so those that are known have statements of their own.
  const knownLookups = createBatchLoader(store.findByHashes, BATCHES);
  const unknownLookups = createBatchLoader(store.findByHashes, BATCHES);
  const distrust = (ids: ReadonlySet<string> | undefined) => {
    for (const entry of known.values()) {
      if (ids !== undefined && !ids.has(entry.apiKey.id)) continue;
      entry.foundAt = Number.NEGATIVE_INFINITY;
      entry.isFollowed = false;
    }
  };
  changes.onChange(distrust);

  const lookUp = async (header: string, key: string, isLast: boolean) => {
    // The key is trusted from when the query was sent: a slow result is already old.
    const foundAt = performance.now();
    const { answers } = changes;
    const forgottenBefore = forgotten;
    const found = await (known.has(header) ? knownLookups : unknownLookups).load(hashKey(key), isLast);
    if (found === undefined) {
      known.delete(header);
      return void unknown.set(header, true);
    }
    // The row has the hint of the key that a rotation has put in the place of this one.
    const apiKey = { ...found, hint: toHint(key) };
    const rereadAt = foundAt + REREAD_AFTER_MS.min + Math.random() * REREAD_AFTER_MS.spread;
    // An answer that came meanwhile may have reported a change that this lookup was too early for.
    known.set(header, { apiKey, foundAt, rereadAt, isFollowed: changes.answers === answers });
    if (forgotten !== forgottenBefore) distrust(new Set([apiKey.id]));
    return apiKey;
  };
  /** Together once a second: one by one they would cost ten times as much. Requests that wait for a lookup come first. */
  const rereadDue = async () => {
    const lookups = [...due].map((header) => lookUp(header, readBearerKey(header) ?? '', true));
    due.clear();
    await Promise.all(lookups);
  };
  // Whatever could not be looked up is looked up when a request needs it, at the latest MAX_TRUST_MS after the last time.
  const endRereading = repeat(
    () => REREAD_INTERVAL_MS,
    () => rereadDue().catch(() => {}),
  );
  const findFresh = (header: string) => {
    const found = known.get(header);
    if (found === undefined) return undefined;
    const now = performance.now();
    if (!found.isFollowed) return now - found.foundAt < KEY_TTL_MS ? found.apiKey : undefined;
    if (now - found.foundAt >= MAX_TRUST_MS) return undefined;
    if (now >= found.rereadAt) due.add(header);
    return now - Math.max(found.foundAt, changes.askedAt) < KEY_TTL_MS ? found.apiKey : undefined;
  };
  const find = (header: string, key: string, isOverLimit: () => boolean) => {
    const apiKey = findFresh(header);
    if (apiKey !== undefined || unknown.has(header)) return apiKey;
    const running =
      pending.get(header) ??
      lookUp(header, key, !known.has(header) && isOverLimit()).finally(() => pending.delete(header));
    pending.set(header, running);
    return running;
  };
  const ifActive = (apiKey: ApiKey | undefined) =>
    apiKey !== undefined && isActive(apiKey, now()) ? apiKey : undefined;
  const toAuthentication = (found: ApiKey | undefined): Authentication => {
    const apiKey = ifActive(found);
    return apiKey === undefined ? INVALID_KEY : { apiKey };
  };
  const peekStale = (authorization: string | undefined) => {
    if (authorization === undefined) return undefined;
    const entry = known.peek(authorization) ?? known.peek(`Bearer ${readBearerKey(authorization)}`);
    return entry?.apiKey;
  };
  return {
    /**
     * Whose request an Authorization header makes it, within KEY_LOOKUP_TIMEOUT_MS. Never rejects.
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
    /** The same from the cache alone; undefined when the key has to be looked up. */
    peek(authorization: string | undefined): Authentication | undefined {
      if (authorization === undefined) return MISSING_KEY;
      const found = findFresh(authorization);
      return found === undefined && !unknown.has(authorization) ? undefined : toAuthentication(found);
    },
    /** The id of the key if it was valid when it was last found. */
    findKnownId: (authorization: string | undefined) => ifActive(peekStale(authorization))?.id,
    /** Trusts nothing that is known of a key, old or new, or being looked up: this process has just changed its row. */
    forget(id: string): void {
      forgotten += 1;
      distrust(new Set([id]));
      pending.clear();
    },
    /** Stops looking keys up again; call it before the database is closed. */
    close: () => endRereading(),
  };
}

/** Why a key may not call an operation that needs this scope, or undefined if it may. */
export function findScopeError(
  { scopes }: Pick<ApiKey, 'scopes'>,
  scope: Scope | 'any',
): ApiError | undefined {
  return scope === 'any' || scopes.includes(scope) ? undefined : insufficientScope(scope);
}

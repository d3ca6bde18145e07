import { LRUCache } from 'lru-cache';
import { ApiError } from '../errors.js';
import { hashKey, isWellFormedKey, type KeyPrefix } from './format.js';
import type { ApiKey, KeyStore } from './store.js';

/** How long a look-up is believed, in milliseconds: half of what a revocation may take to be felt. */
const LOOKUP_TTL_MS = 1_000;
/** The most keys remembered at once, known and unknown ones together. */
const LOOKUPS_MAX = 10_000;

/** RFC 6750, section 2.1; the scheme's case does not matter (RFC 9110, section 11.1). */
const BEARER = /^bearer +(\S.*)$/i;

export interface Authenticator {
  /**
   * The key that an Authorization header names.
   *
   * @throws ApiError missing_api_key, invalid_api_key; and what the database throws when it cannot be asked
   */
  authenticate(authorization: string | undefined): Promise<ApiKey>;
  /** The same, of a key that was looked up a moment ago; undefined when it has to be asked for, or is not valid. */
  recall(authorization: string | undefined): ApiKey | undefined;
  /** Ends what is believed of a key, so that its next use asks the database. */
  forget(keyId: string): void;
}

export function createAuthenticator(options: {
  store: KeyStore;
  prefix: KeyPrefix;
  now: () => number;
  /** How long a look-up is believed, in milliseconds: what a change takes that nobody tells of */
  ttlMs?: number;
}): Authenticator {
  const { store, prefix, now, ttlMs = LOOKUP_TTL_MS } = options;
  let changes = 0;
  // By the header as nearly all send it, so that a key in use is neither hashed nor taken apart again. Not by any header
  // that means the same: with spaces of one's choice each could be 16 KB, and each would be looked up anew.
  const lookups = new LRUCache<string, { apiKey: ApiKey | undefined }, Uint8Array>({
    max: LOOKUPS_MAX,
    ttl: ttlMs,
    fetchMethod: async (_key, _stale, { context, options }) => {
      const askedAt = performance.now();
      const changesBefore = changes;
      const apiKey = await store.findByHash(context);
      // Believed from when it was asked: a slow answer is an old one, and one that a change overtook may be wrong.
      const age = changes === changesBefore ? performance.now() - askedAt : ttlMs;
      options.ttl = Math.max(1, ttlMs - age);
      return { apiKey };
    },
  });
  const inForce = (apiKey: ApiKey | undefined) =>
    apiKey !== undefined && isInForce(apiKey, now()) ? apiKey : undefined;
  return {
    async authenticate(authorization) {
      const key = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
      if (key === undefined) throw unauthorized('missing_api_key');
      if (!isWellFormedKey(key, prefix)) throw unauthorized('invalid_api_key');
      const header = `Bearer ${key}`;
      const found = await (lookups.get(header) ?? lookups.fetch(header, { context: hashKey(key) }));
      const apiKey = inForce(found?.apiKey);
      if (apiKey === undefined) throw unauthorized('invalid_api_key');
      return apiKey;
    },
    recall(authorization) {
      return authorization === undefined ? undefined : inForce(lookups.get(authorization)?.apiKey);
    },
    forget(keyId) {
      changes += 1;
      for (const [header, { apiKey }] of [...lookups.entries()])
        if (apiKey?.id === keyId) lookups.delete(header);
    },
  };
}

/** Whether a key is neither revoked nor expired at a moment, in Unix milliseconds. */
export function isInForce({ revokedAt, expiresAt }: ApiKey, now: number): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt.getTime() > now);
}

function unauthorized(code: 'missing_api_key' | 'invalid_api_key'): ApiError {
  return new ApiError(code, { headers: { 'www-authenticate': 'Bearer' } });
}

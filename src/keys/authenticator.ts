import { LRUCache } from 'lru-cache';
import { ApiError } from '../errors.js';
import { hashKey, isWellFormedKey, type KeyPrefix } from './format.js';
import { type ApiKey, isActive, type KeyStore } from './store.js';

/**
 * How long a lookup is trusted. A change to a key, whoever makes it, takes effect on every node within this time plus
 * the length of a request; the contract allows two seconds.
 */
export const KEY_TTL_MS = 1_000;
/** The most lookups cached at once, of known and unknown keys together. */
const MAX_LOOKUPS = 10_000;

/** RFC 6750, section 2.1; the case of the scheme does not matter (RFC 9110, section 11.1). */
const BEARER = /^bearer +(\S.*)$/i;

export interface Authenticator {
  /**
   * The key that an Authorization header names.
   *
   * @throws ApiError missing_api_key, invalid_api_key; and what the database throws when it is unavailable
   */
  authenticate(authorization: string | undefined): Promise<ApiKey>;
  /** The same from the cache alone; undefined when the key has to be looked up or is not valid. */
  peek(authorization: string | undefined): ApiKey | undefined;
}

export interface AuthenticatorOptions {
  readonly store: Pick<KeyStore, 'findByHash'>;
  readonly prefix: KeyPrefix;
  /** Unix milliseconds */
  readonly now: () => number;
}

export function createAuthenticator({ store, prefix, now }: AuthenticatorOptions): Authenticator {
  // The cache is keyed by the usual form of the header, so that a key in use is neither parsed nor hashed again. Other
  // forms share that entry: with extra spaces, each could be 16 KB long and an entry of its own.
  const lookups = new LRUCache<string, { apiKey: ApiKey | undefined }, Uint8Array>({
    max: MAX_LOOKUPS,
    ttl: KEY_TTL_MS,
    fetchMethod: async (_header, _stale, { context, options }) => {
      const startedAt = performance.now();
      const apiKey = await store.findByHash(context);
      // The key is trusted from when the query was sent: a slow result is already old.
      options.ttl = Math.max(1, KEY_TTL_MS - (performance.now() - startedAt));
      return { apiKey };
    },
  });
  const ifActive = (apiKey: ApiKey | undefined) =>
    apiKey !== undefined && isActive(apiKey, now()) ? apiKey : undefined;
  return {
    async authenticate(authorization) {
      const key = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
      if (key === undefined) throw unauthorized('missing_api_key');
      if (!isWellFormedKey(key, prefix)) throw unauthorized('invalid_api_key');
      const header = `Bearer ${key}`;
      const found = await (lookups.get(header) ?? lookups.fetch(header, { context: hashKey(key) }));
      const apiKey = ifActive(found?.apiKey);
      if (apiKey === undefined) throw unauthorized('invalid_api_key');
      return apiKey;
    },
    peek(authorization) {
      return authorization === undefined ? undefined : ifActive(lookups.get(authorization)?.apiKey);
    },
  };
}

function unauthorized(code: 'missing_api_key' | 'invalid_api_key'): ApiError {
  return new ApiError(code, { headers: { 'www-authenticate': 'Bearer' } });
}

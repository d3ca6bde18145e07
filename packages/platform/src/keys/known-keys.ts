import { LRUCache } from 'lru-cache';
import { repeat } from '../timing/repeat.js';
import type { FoundKey } from './api-key.js';
import type { KeyStore } from './store.js';

/**
 * How long a key is trusted after the database was last asked about it. So any change of a key takes effect on every node
 * within this time plus the length of a request. The service promises two seconds.
 */
export const KEY_TTL_MS = 1_500;
/** How often the keys in use are checked: they stay trusted if the answer takes less than the rest of KEY_TTL_MS. */
const CHECK_INTERVAL_MS = 1_000;
/** PostgreSQL takes some 40 ms for this many keys. A check of more is several statements. */
export const MAX_CHECKED_AT_ONCE = 5_000;
/** The most keys cached at once, which takes about 64 MB. */
const MAX_KEYS = 100_000;

interface KnownKey {
  readonly apiKey: FoundKey;
  /** When the query was sent that last confirmed the key, by performance.now() */
  confirmedAt: number;
  /** Whether a request has used the key since the last check began */
  isInUse: boolean;
}

/** `confirmedAt` of a key that has to be looked up */
const NEVER = Number.NEGATIVE_INFINITY;

/**
 * The keys that were found, by the usual form of their header. Once a second a query asks which keys in use have changed,
 * so that they stay trusted, and no request waits for a lookup.
 */
export function createKnownKeys(store: Pick<KeyStore, 'findChanged'>) {
  // With `max` instead of sizes, the cache would allocate memory for all keys now.
  const entries = new LRUCache<string, KnownKey>({ maxSize: MAX_KEYS, sizeCalculation: () => 1 });
  /** The keys that requests have used since the last check began */
  let inUse: KnownKey[] = [];
  const use = (entry: KnownKey) => {
    if (!entry.isInUse) inUse.push(entry);
    entry.isInUse = true;
    return entry.apiKey;
  };
  const check = async () => {
    const used = inUse;
    inUse = [];
    for (const entry of used) entry.isInUse = false;
    for (let start = 0; start < used.length; start += MAX_CHECKED_AT_ONCE) {
      const checked = used.slice(start, start + MAX_CHECKED_AT_ONCE);
      const askedAt = performance.now();
      const changed = new Set(await store.findChanged(checked.map(({ apiKey }) => apiKey)));
      for (const entry of checked) {
        if (changed.has(entry.apiKey.id)) entry.confirmedAt = NEVER;
        // A key that was distrusted meanwhile stays distrusted.
        else if (entry.confirmedAt !== NEVER) entry.confirmedAt = askedAt;
      }
    }
  };
  let checkedAt = 0;
  const endChecks = repeat(
    () => Math.max(0, checkedAt + CHECK_INTERVAL_MS - performance.now()),
    async () => {
      checkedAt = performance.now();
      // Without an answer the keys expire, and are looked up one by one.
      await check().catch(() => {});
    },
  );
  return {
    has: (header: string) => entries.has(header),
    /** The key of a header if it is trusted now */
    findTrusted(header: string): FoundKey | undefined {
      const entry = entries.get(header);
      return entry && performance.now() - entry.confirmedAt < KEY_TTL_MS ? use(entry) : undefined;
    },
    /** The key of a header as it was last found, however long ago */
    peek: (header: string): FoundKey | undefined => entries.peek(header)?.apiKey,
    /** @param confirmedAt when the query that has found the key was sent, by performance.now() */
    add(header: string, apiKey: FoundKey, confirmedAt: number): FoundKey {
      const entry = { apiKey, confirmedAt, isInUse: false };
      entries.set(header, entry);
      return use(entry);
    },
    delete: (header: string) => void entries.delete(header),
    /** Lets a key be looked up again, because its row has changed. */
    distrust(id: string): void {
      for (const entry of entries.values()) if (entry.apiKey.id === id) entry.confirmedAt = NEVER;
    },
    /** Stops checking keys. */
    close: () => endChecks(),
  };
}

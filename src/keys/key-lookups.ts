import { createBatchLoader } from '../batching/batch-loader.js';
import { KEY_LOOKUP_TIMEOUT_MS } from '../batching/timeouts.js';
import type { ApiKey, KeyStore } from './store.js';

/** One statement at a time, for as many keys as are found within a tick of the event loop. */
const BATCHES = { maxSize: 50, maxConcurrent: 1, maxWaitMs: KEY_LOOKUP_TIMEOUT_MS };

/**
 * `known`: the key was valid a moment ago. `unknown`: it has not been seen. `unknown-over-limit`: nor has it, and its
 * address is over its limit.
 */
export type LookupPriority = 'known' | 'unknown' | 'unknown-over-limit';

/** Finds the key with a hash. May fail with a database error. */
export type LookUpKey = (hash: Uint8Array, priority: LookupPriority) => Promise<ApiKey | undefined>;

/**
 * Looks up keys by hash, many at a time. Anybody can make up keys that have to be looked up, so those that are known have
 * statements of their own, and those from addresses over their limit wait for the others.
 */
export function createKeyLookups(store: Pick<KeyStore, 'findByHashes'>): LookUpKey {
  const findByHashes = (hashes: readonly Uint8Array[]) => store.findByHashes(hashes);
  const known = createBatchLoader(findByHashes, BATCHES);
  const unknown = createBatchLoader(findByHashes, BATCHES);
  return (hash, priority) =>
    priority === 'known' ? known.load(hash) : unknown.load(hash, priority === 'unknown-over-limit');
}

import type { Database } from '../database/client.js';
import { type Authenticator, createAuthenticator } from './authenticator.js';
import { subscribe } from './events.js';
import type { KeyPrefix } from './format.js';
import { createKeyStore, type KeyStore } from './store.js';
import { UsageCounter } from './usage.js';
import { createUsageStore } from './usage-store.js';

export interface KeyringOptions {
  readonly database: Database;
  readonly databaseUrl: string;
  readonly redisUrls: readonly string[];
  readonly keyPrefix: KeyPrefix;
  /** The names of the operations whose use is counted */
  readonly operations: Iterable<string>;
  readonly now: () => number;
  /** Makes what is told of a failure that passes by itself */
  readonly warn: (message: string) => (error: unknown) => void;
}

/** What a node has to do with keys: whom it lets in, what it hears of changes, and what it counts. */
export interface Keyring {
  readonly store: KeyStore;
  readonly authenticator: Authenticator;
  readonly usage: UsageCounter;
  /** Removes usage older than 30 days. */
  forgetOld(): Promise<void>;
  /** Stores what was counted; before the database is closed, when no request runs any more. */
  close(): Promise<void>;
}

/** Begins to listen for changed keys and to count at once. */
export function openKeyring(options: KeyringOptions): Keyring {
  const { database, keyPrefix, now, operations, warn } = options;
  const store = createKeyStore(database, keyPrefix);
  const usages = createUsageStore(database);
  const authenticator = createAuthenticator({ store, prefix: keyPrefix, now });
  const usage = new UsageCounter({
    store: usages,
    operations,
    now,
    warn: warn('usage is kept in memory for now'),
  });
  const subscription = subscribe({
    ...options,
    onChange: (keyId) => authenticator.forget(keyId),
    warn: warn('changes of keys are felt up to a second late for now'),
  });
  return {
    store,
    authenticator,
    usage,
    forgetOld: () => usages.forgetOld(Date.now()).catch(warn('old usage was not removed')),
    async close() {
      subscription.close();
      await usage.close();
    },
  };
}

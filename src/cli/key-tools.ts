import type { ApiKey, KeyStore } from '../keys/store.js';
import type { UsageStore } from '../keys/usage-store.js';
import type { LimitStatus } from '../limits/rate-limit-result.js';
import type { OperationName } from './tables.js';

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
  readonly listOperations: () => Promise<readonly OperationName[]>;
  readonly write: (text: string) => void;
}

import type { Database } from '../connections/client.js';
import { createUsageReader, lastDays, type Usage } from '../usage/store.js';

/** What is stored about a key outside its row, which comes with the request as `ctx.apiKey`. */
export interface CallerKeyStore {
  /** What the key has called in the last SHOWN_DAYS (UTC), newest first. `now` is in Unix milliseconds. */
  readonly readUsage: (apiKeyId: string, now: number) => Promise<readonly Usage[]>;
}

export function createCallerKeyStore(database: Database): CallerKeyStore {
  const readUsage = createUsageReader(database);
  return { readUsage: (apiKeyId, now) => readUsage(apiKeyId, lastDays(now)) };
}

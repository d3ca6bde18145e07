import type { Database } from '../connections/client.js';
import { createUsageReader, lastDays } from '../usage/store.js';

export type CallerKeyStore = ReturnType<typeof createCallerKeyStore>;

/** What is stored about a key outside its row, which comes with the request as `ctx.apiKey`. */
export function createCallerKeyStore(database: Database) {
  const readUsage = createUsageReader(database);
  return {
    /** What the key has called in the last SHOWN_DAYS (UTC), newest first. `now` is in Unix milliseconds. */
    readUsage: (apiKeyId: string, now: number) => readUsage(apiKeyId, lastDays(now)),
  };
}

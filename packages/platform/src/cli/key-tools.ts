import type { Database } from '../connections/client.js';
import { withOutages } from '../connections/outage.js';
import { withStatementTimeout } from '../connections/statement-timeout.js';
import { createKeyHistoryStore } from '../keys/history.js';
import { createKeyStore } from '../keys/store.js';
import type { Config } from '../process/config.js';
import { COMMAND_STATEMENT_TIMEOUT_MS } from '../timing/timeouts.js';
import { createUsageStore } from '../usage/store.js';
import type { CommandOptions, KeyTools } from './key-command.js';

/** How long a command waits for the database, over all its statements. */
const COMMAND_TIMEOUT_MS = 60_000;

/** @param applicationName as which PostgreSQL and the history of keys show the caller. Default: that of the connection */
export function createKeyTools(
  { definition, loadResources }: CommandOptions,
  database: Database,
  { keyPrefix }: Pick<Config, 'keyPrefix'>,
  applicationName?: string,
): KeyTools {
  const pool = withStatementTimeout(database.pool, () => COMMAND_STATEMENT_TIMEOUT_MS, { applicationName });
  const patient = { ...database, pool };
  return {
    definition,
    loadResources,
    store: withOutages(
      COMMAND_TIMEOUT_MS,
      createKeyStore(patient, keyPrefix, definition.defaultScopes ?? definition.scopes),
    ),
    usage: withOutages(COMMAND_TIMEOUT_MS, createUsageStore(patient)),
    history: withOutages(COMMAND_TIMEOUT_MS, createKeyHistoryStore(patient)),
  };
}

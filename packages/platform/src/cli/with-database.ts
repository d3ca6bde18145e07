import {
  type ConfiguredDatabase,
  type ConfiguredOptions,
  openConfiguredDatabase,
} from '../database/open-database.js';
import type { Definition } from '../definition/definition.js';
import { type Config, readConfig } from '../process/config.js';
import { COMMAND_CONNECT_TIMEOUT_MS } from '../timing/timeouts.js';
import { describeCaller } from './caller.js';

/** Of a command's log, only warnings are worth printing. */
const WARNINGS: ConfiguredOptions['log'] = {
  info() {},
  warn: (_bindings, message) => void process.stderr.write(`${message}\n`),
};

interface WithDatabaseOptions {
  /** The name of the command, by which PostgreSQL and the history of keys show who calls. Default: the store's name */
  readonly command?: string;
  /** Default: warnings to standard error */
  readonly log?: ConfiguredOptions['log'];
  /** Whether the embedded database keeps lacking pending migrations. Default false */
  readonly isLeftAsItIs?: boolean;
}

/** Runs a function on DATABASE_URL or the embedded database, even if a service is using it, and closes it afterwards. */
export async function withDatabase(
  definition: Definition,
  { command, log = WARNINGS, isLeftAsItIs = false }: WithDatabaseOptions,
  run: (source: ConfiguredDatabase, config: Config) => Promise<void>,
): Promise<void> {
  const { identity } = definition;
  const config = readConfig(identity, process.env);
  const source = await openConfiguredDatabase({
    definition,
    config,
    role: 'guest',
    isLeftAsItIs,
    log,
    connectTimeoutMs: COMMAND_CONNECT_TIMEOUT_MS,
    applicationName: command === undefined ? undefined : describeCaller(identity.name, command),
  });
  try {
    await run(source, config);
  } finally {
    await source.close();
  }
}

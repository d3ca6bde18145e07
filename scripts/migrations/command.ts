import { type DatabaseSource, openSource } from '../../packages/platform/src/migrations/source.js';
import { readConfig } from '../../packages/platform/src/process/config.js';
import { loadEnvironmentFile } from '../../packages/platform/src/process/environment-file.js';
import { exitWithError } from '../../packages/platform/src/process/exit.js';
import { COMMAND_CONNECT_TIMEOUT_MS } from '../../packages/platform/src/timing/timeouts.js';
import { definition } from '../../src/definition/definition.js';

const warn = (message: string) => void process.stderr.write(`${message}\n`);
const log = { info: warn, warn: (_bindings: object, message: string) => warn(message) };

/**
 * Runs a tool on the database that the configuration names, or on the embedded database, to which nothing is applied. Ends
 * the process if the tool fails.
 */
export async function runOnSource(run: (source: DatabaseSource) => Promise<void>): Promise<void> {
  try {
    loadEnvironmentFile().forEach(warn);
    const source = await openSource({
      definition,
      config: readConfig(definition.identity, process.env),
      role: 'guest',
      isLeftAsItIs: true,
      connectTimeoutMs: COMMAND_CONNECT_TIMEOUT_MS,
      log,
    });
    await run(source).finally(() => source.close());
  } catch (error) {
    exitWithError(definition.root, error);
  }
}

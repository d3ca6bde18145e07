import { exitWithError } from '../../src/platform/errors/operator-error.js';
import { type DatabaseSource, openSource } from '../../src/platform/migrations/source.js';
import { readConfig } from '../../src/platform/process/config.js';
import { loadEnvironmentFile } from '../../src/platform/process/environment-file.js';
import { COMMAND_CONNECT_TIMEOUT_MS } from '../../src/platform/timing/timeouts.js';

const warn = (message: string) => void process.stderr.write(`${message}\n`);
const log = { info: warn, warn: (_bindings: object, message: string) => warn(message) };

/**
 * Runs one of the tools on the database that the configuration names, or on the embedded one, to which nothing is applied.
 * Ends the process if it fails.
 */
export async function runOnSource(run: (source: DatabaseSource) => Promise<void>): Promise<void> {
  try {
    loadEnvironmentFile().forEach(warn);
    const source = await openSource({
      config: readConfig(process.env),
      role: 'guest',
      isLeftAsItIs: true,
      connectTimeoutMs: COMMAND_CONNECT_TIMEOUT_MS,
      log,
    });
    await run(source).finally(() => source.close());
  } catch (error) {
    exitWithError(error);
  }
}

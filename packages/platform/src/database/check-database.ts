import type { Connections } from '../connections/connections.js';
import type { Definition } from '../definition/definition.js';
import { describeGap, findHistoryGap } from '../keys/history.js';
import { checkSchema } from '../migrations/grants.js';
import { toInstalledCommands } from '../operator-errors/installed-commands.js';
import { OperatorError } from '../operator-errors/operator-error.js';

/**
 * The one answer to whether a database can be used: of the start, of readiness, and of the commands on keys. Resolves with a
 * warning if changes of keys are not all on record.
 *
 * @throws OperatorError see checkSchema
 */
export async function checkDatabase(
  definition: Definition,
  database: Pick<Connections, 'pool' | 'schema' | 'inSchema'>,
  kind: 'service' | 'keys' = 'service',
): Promise<string | undefined> {
  const { root } = definition;
  await checkSchema(definition, database, kind).catch((error: unknown) => {
    if (!(error instanceof OperatorError)) throw error;
    const { message, exitCode, cause } = error;
    // Here, because readiness logs the error and ends nothing.
    throw new OperatorError(toInstalledCommands(root, message), { exitCode, cause });
  });
  const gap = await findHistoryGap(database);
  return gap && toInstalledCommands(root, describeGap(gap));
}

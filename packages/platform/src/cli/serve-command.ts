import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Command } from 'commander';
import { checkDatabase } from '../database/check-database.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { readConfig, toLocalUrl } from '../process/config.js';
import { DRAIN_TIMEOUT_MS, FORCE_EXIT_MS, waitForShutdown } from '../process/shutdown.js';
import { parseNumber } from './arguments.js';
import { describeCaller } from './caller.js';
import type { CommandOptions } from './key-command.js';
import { createKeyTools } from './key-tools.js';
import { addExamples } from './keys-command.js';
import { createTokenCheck, type Operator } from './operator-tokens.js';
import { withDatabase } from './with-database.js';

const SERVE = 'keys serve';

interface Address {
  readonly host: string;
  readonly port: number;
}

/** The command that serves the others until a signal. */
export function addServeCommand(keys: Command, options: CommandOptions): void {
  const { root } = options.definition;
  const command = keys
    .command('serve')
    .description('serve these commands over HTTP, to programs of yours that have KEYS_TOKEN')
    .requiredOption('--port <port>', 'the port that it listens on', parseNumber('port', 65_535))
    .option('--host <host>', 'the address that it listens on', '127.0.0.1')
    .action((address: Address) => serveKeys(options, address));
  addExamples(command, root, ['serve --port 3001']);
}

async function serveKeys(options: CommandOptions, address: Address): Promise<void> {
  const { definition } = options;
  const { identity } = definition;
  const warn = (message: string) => void process.stderr.write(`${message}\n`);
  const findOperator = createTokenCheck(process.env, warn);
  const shutdown = waitForShutdown();
  const { createLogger } = await import('../process/logger.js');
  const { log } = await createLogger(identity, readConfig(identity, process.env));
  await withDatabase(definition, { command: SERVE, log }, async ({ database }, config) => {
    const warning = await checkDatabase(definition, database, 'keys');
    if (warning !== undefined) log.warn(warning);
    const { createCachedCheck } = await import('../monitoring/readiness.js');
    const { createKeyServer } = await import('./key-server.js');
    // On connections of its own, so that a command that waits does not keep it waiting.
    const reads = { ...database, pool: database.reads.pool };
    const server = createKeyServer({
      definition,
      toolsOf({ name }: Operator) {
        const caller = name === undefined ? undefined : describeCaller(identity.name, `${SERVE} for ${name}`);
        return createKeyTools(options, database, config, caller);
      },
      findOperator,
      checkReadiness: createCachedCheck(() => checkDatabase(definition, reads, 'keys')),
      log,
    });
    await listen(server, address);
    log.info(`keys are managed at ${toLocalUrl(address.host, address.port)}`);
    log.info(`${await shutdown}: finishing running requests`);
    setTimeout(() => server.closeAllConnections(), DRAIN_TIMEOUT_MS).unref();
    setTimeout(() => process.exit(0), FORCE_EXIT_MS).unref();
    server.close();
    await once(server, 'close');
  });
}

/** @throws OperatorError when that is not possible */
async function listen(server: Server, { host, port }: Address): Promise<void> {
  try {
    await once(server.listen(port, host), 'listening');
  } catch (cause) {
    const { message } = cause as Error;
    const advice = 'choose others with --host and --port';
    throw new OperatorError(`It cannot listen on ${host}, port ${port} (${message}): ${advice}.`, { cause });
  }
}

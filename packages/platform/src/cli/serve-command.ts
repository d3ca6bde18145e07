import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import { OperatorError } from '../errors/operator-error.js';
import { describeGap, findHistoryGap } from '../keys/history.js';
import { checkSchema } from '../migrations/grants.js';
import type { DatabaseSource } from '../migrations/source.js';
import { readConfig, toLocalUrl } from '../process/config.js';
import { DRAIN_TIMEOUT_MS, FORCE_EXIT_MS, waitForShutdown } from '../process/shutdown.js';
import { parseNumber } from './arguments.js';
import type { KeyTools } from './command.js';
import { addExamples } from './key-commands.js';
import { createTokenCheck, type Operator } from './operator-tokens.js';

type WithTools = (
  log: Logger,
  run: (toolsOf: (operator: Operator) => KeyTools, database: DatabaseSource['database']) => Promise<void>,
) => Promise<void>;

interface Address {
  readonly host: string;
  readonly port: number;
}

/** The command that serves the others until a signal. */
export function addServeCommand(keys: Command, withTools: WithTools): void {
  const command = keys
    .command('serve')
    .description('serve these commands over HTTP, to programs of yours that have KEYS_TOKEN')
    .requiredOption('--port <port>', 'the port that it listens on', parseNumber('port', 65_535))
    .option('--host <host>', 'the address that it listens on', '127.0.0.1')
    .action(async (address: Address) => {
      const warn = (message: string) => void process.stderr.write(`${message}\n`);
      const findOperator = createTokenCheck(process.env, warn);
      const shutdown = waitForShutdown();
      const { createLogger } = await import('../process/logger.js');
      const { log } = await createLogger(readConfig(process.env));
      await withTools(log, async (toolsOf, database) => {
        const { createCachedCheck } = await import('../monitoring/probes.js');
        const { createKeyServer } = await import('./key-server.js');
        // On connections of its own, so that a command that waits does not keep it waiting.
        const reads = { ...database, pool: database.reads.pool };
        const checkReadiness = createCachedCheck(async () => {
          await checkSchema(reads, 'keys');
          const gap = await findHistoryGap(reads);
          return gap && describeGap(gap);
        });
        const server = createKeyServer({ toolsOf, findOperator, checkReadiness, log });
        await listen(server, address);
        log.info(`keys are managed at ${toLocalUrl(address.host, address.port)}`);
        log.info(`${await shutdown}: finishing running requests`);
        setTimeout(() => server.closeAllConnections(), DRAIN_TIMEOUT_MS).unref();
        setTimeout(() => process.exit(0), FORCE_EXIT_MS).unref();
        server.close();
        await once(server, 'close');
      });
    });
  addExamples(command, ['serve --port 3001']);
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

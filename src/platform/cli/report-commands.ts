import { nextBanSeconds } from '../keys/bans.js';
import { lastDays } from '../usage/store.js';
import * as parse from './arguments.js';
import { HISTORY } from './history-command.js';
import { addIdOrHint, findKey, HINT, ID, type KeyCommand } from './key-command.js';
import { printKey } from './key-view.js';
import { LIST } from './list-command.js';
import { formatSparkline, toDayCounts } from './sparkline.js';
import { addUsageOptions, printUsage, printUsageOfKeys, type UsageOptions } from './usage-command.js';

/** The commands that change no key. */
export const REPORTS: readonly KeyCommand[] = [
  LIST,
  {
    name: 'show',
    description: 'show one key, when and how much it was used, and how long its next ban would last',
    examples: [ID, HINT],
    addArguments: addIdOrHint,
    async run(tools, command) {
      const apiKey = await findKey(tools, command);
      const now = Date.now();
      const next = nextBanSeconds(apiKey, now);
      const days = lastDays(now);
      const usage = await tools.usage.read(apiKey.id, days);
      return printKey(apiKey, { nextBanSeconds: next }, [
        ['Last used', apiKey.lastUsedOn ?? '-'],
        ['Last 30 days', usage.length === 0 ? '-' : formatSparkline(toDayCounts(usage), days)],
        ['Next ban', `${next} s`],
      ]);
    },
  },
  {
    name: 'usage',
    description: 'show the requests of the last 30 days (UTC), or of others, up to half a minute ago',
    examples: ['', '--by denied --owner acme', '--from 2026-01-01 --to 2026-03-31 --csv', ID],
    addArguments(command) {
      command.argument(
        '[id]',
        'one key, by operation and day; without it, all keys, by requests',
        parse.parseId,
      );
      addUsageOptions(command);
    },
    async run(tools, command) {
      const { listOperations } = await import('../operations/list-operations.js');
      const { createRouter } = await import('../operations/resource.js');
      const operations = listOperations(createRouter(await tools.loadResources()));
      const options = command.opts<UsageOptions>();
      return command.args.length === 0
        ? printUsageOfKeys(tools, options, operations)
        : printUsage(tools.usage, options, operations, await findKey(tools, command));
    },
  },
  HISTORY,
];

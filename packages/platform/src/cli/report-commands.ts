import { z } from 'zod';
import { nextBanSeconds } from '../contract/bans.js';
import type { Definition } from '../definition/definition.js';
import { lastDays, SHOWN_DAYS } from '../usage/store.js';
import { HISTORY } from './history-command.js';
import { defineCommand, type KeyCommand } from './key-command.js';
import { findKey, ID, oneKeyOrHint } from './key-selection.js';
import { printKey } from './key-view.js';
import { createListCommand } from './list-command.js';
import { formatSparkline, toDayCounts } from './sparkline.js';
import { hintExample } from './store-arguments.js';
import { printUsage, printUsageOfKeys, USAGE_INPUT } from './usage-command.js';

/** The commands that change no key. */
export const createReportCommands = (definition: Definition): readonly KeyCommand[] => [
  createListCommand(definition),
  defineCommand({
    name: 'show',
    description: 'show one key, when and how much it was used, and how long its next ban would last',
    examples: [ID, hintExample(definition)],
    input: z.strictObject(oneKeyOrHint(definition)),
    async run(tools, { id }) {
      const apiKey = await findKey(tools, id);
      const now = Date.now();
      const next = nextBanSeconds(apiKey, now);
      const days = lastDays(now);
      const usage = await tools.usage.read(apiKey.id, days);
      return printKey(definition, apiKey, { nextBanSeconds: next }, [
        ['Last used', apiKey.lastUsedOn ?? '-'],
        [`Last ${SHOWN_DAYS} days`, usage.length === 0 ? '-' : formatSparkline(toDayCounts(usage), days)],
        ['Next ban', `${next} s`],
      ]);
    },
  }),
  defineCommand({
    name: 'usage',
    description: `show the requests of the last ${SHOWN_DAYS} days (UTC), or of other days, up to half a minute ago`,
    examples: [
      '',
      '--by denied --owner acme',
      '--by owner --from 2026-01-01 --to 2026-01-31 --csv',
      '--from 2026-01-01 --to 2026-03-31 --csv',
      ID,
    ],
    input: USAGE_INPUT,
    async run(tools, { id, ...options }) {
      const { listOperations } = await import('../operations/list-operations.js');
      const { createRouter } = await import('../operations/resource.js');
      const operations = listOperations(createRouter(await tools.loadResources()));
      return id === undefined
        ? printUsageOfKeys(tools, options, operations)
        : printUsage(tools.usage, options, operations, await findKey(tools, id));
    },
  }),
  HISTORY,
];

import { Option } from 'commander';
import { PLAN_NAMES, type Plan } from '#store/plans.js';
import { nextBanSeconds } from '../keys/bans.js';
import type { ListedKey } from '../keys/store.js';
import * as parse from './arguments.js';
import { HISTORY } from './history-command.js';
import { addId, findKey, ID, type KeyCommand } from './key-command.js';
import * as view from './key-view.js';
import { addUsageOptions, printUsage, printUsageOfKeys, type UsageOptions } from './usage-command.js';

interface ListOptions {
  readonly plan?: Plan;
  readonly state?: view.KeyState;
  readonly owner?: string;
  /** In seconds */
  readonly unusedFor?: number;
}

/** The commands that change no key. */
export const REPORTS: readonly KeyCommand[] = [
  {
    name: 'list',
    description: 'show all keys, or those that match all given options',
    examples: ['', '--owner acme', '--state active --unused-for 90d', '--plan enterprise --json'],
    addArguments(command) {
      command
        .addOption(new Option('--plan <plan>', 'only keys of this plan').choices(PLAN_NAMES))
        .addOption(new Option('--state <state>', 'only keys in this state').choices(view.KEY_STATES))
        .option(
          '--unused-for <duration>',
          'only keys older than that, and not used since',
          parse.parseDuration,
        )
        .option('--owner <owner>', 'only keys of this owner', parse.parseOwner);
    },
    async run({ store }, command) {
      const options = command.opts<ListOptions>();
      const found = options.owner === undefined ? store.list() : store.findByOwner(options.owner);
      const now = Date.now();
      return view.printKeys((await found).filter((apiKey) => fits(apiKey, options, now)));
    },
  },
  {
    name: 'show',
    description: 'show one key, when it was used, and how long its next ban would last',
    examples: [ID],
    addArguments: addId,
    async run(tools, command) {
      const apiKey = await findKey(tools, command);
      const next = nextBanSeconds(apiKey, Date.now());
      return view.printKey(apiKey, { nextBanSeconds: next }, [
        ['Last used', apiKey.lastUsedOn ?? '-'],
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

/** Whether a key matches the options. A key that was never used counts as unused since its creation. */
function fits(apiKey: ListedKey, { plan, state, unusedFor }: ListOptions, now: number): boolean {
  const usedAt = apiKey.lastUsedOn === null ? apiKey.createdAt.getTime() : Date.parse(apiKey.lastUsedOn);
  return (
    (plan === undefined || apiKey.plan === plan) &&
    (state === undefined || view.toKeyJson(apiKey, now).state === state) &&
    (unusedFor === undefined || usedAt < now - unusedFor * 1000)
  );
}

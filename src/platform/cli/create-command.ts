import { SCOPES, type Scope } from '#store/scopes.js';
import { createOnce } from '../keys/once.js';
import type { PlanChoice } from '../keys/store.js';
import * as parse from './arguments.js';
import type { KeyCommand } from './key-command.js';
import * as view from './key-view.js';

interface CreateOptions extends PlanChoice {
  readonly name: string;
  readonly owner?: string;
  readonly expires?: Date;
  readonly scopes?: readonly Scope[];
  readonly once?: true;
}

export const CREATE: KeyCommand = {
  name: 'create',
  description: 'issue a key, which is shown only this once',
  examples: [
    '--name shop --plan pro --owner acme --expires 30d',
    '--name default --plan free --owner cus_1 --once --json',
    '--name warehouse --plan enterprise --per-minute 5000 --per-day 1000000 --json',
    `--name storefront --plan free --scopes ${SCOPES[0]} -q`,
  ],
  addArguments(command) {
    command
      .requiredOption('--name <name>', 'who or what the key is for', parse.parseName)
      .option('--owner <owner>', 'whose key it is: a text to select keys by', parse.parseOwner);
    parse
      .addPlanOptions(command)
      .addOption(parse.createScopesOption())
      .option('--expires <duration>', 'how long it is valid, such as 30d', parse.parseEnd)
      .option('--once', 'with --owner: unless a key of this owner and name is in use, which is shown instead')
      .addOption(parse.createQuietOption(['json', 'once']))
      .hook('preAction', () => {
        const { once, owner } = command.opts<CreateOptions>();
        if (once && owner === undefined) command.error('error: --once needs --owner');
      });
  },
  async run({ store }, command) {
    const { expires, once, owner, ...options } = command.opts<CreateOptions>();
    const input = { ...options, owner, expiresAt: expires };
    if (!once || owner === undefined) return view.printIssued(await store.create(input));
    const { apiKey, key } = await createOnce(store, { ...input, owner });
    return key === undefined ? view.printInUse(apiKey) : view.printIssued({ apiKey, key }, { isNew: true });
  },
};

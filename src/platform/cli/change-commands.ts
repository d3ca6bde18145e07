import { type Command, Option } from 'commander';
import { SCOPES, type Scope } from '#store/scopes.js';
import { OperatorError } from '../errors/operator-error.js';
import { MAX_BAN_SECONDS } from '../keys/bans.js';
import type { ApiKey, ListedKey, PlanChoice } from '../keys/store.js';
import * as parse from './arguments.js';
import { CREATE } from './create-command.js';
import {
  addId,
  addIdOrOwner,
  expectFound,
  findKey,
  ID,
  type KeyCommand,
  type KeyTools,
  selectKeys,
  usableId,
} from './key-command.js';
import * as view from './key-view.js';

const READ_SCOPES = SCOPES.filter((scope) => scope.endsWith(':read'));

/** The commands that change keys, or issue one. */
export const CHANGES: readonly KeyCommand[] = [
  CREATE,
  {
    name: 'rotate',
    description: 'replace a key: the new one is shown only this once',
    examples: [`${ID} --overlap 24h`, '--owner acme --overlap 24h --yes'],
    addArguments(command) {
      const overlap =
        'how long the old key keeps working, such as 24h (default: it ends at once). The old key of an earlier rotation ends in any case';
      addIdOrOwner(command);
      command
        .option('--overlap <duration>', overlap, parse.parseEnd)
        .addOption(parse.createQuietOption(['json', 'owner']));
    },
    async run({ store }, command) {
      const { overlap } = command.opts<{ overlap?: Date }>();
      const { apiKeys, isOne } = await selectKeys({ store }, command, 'rotated');
      const issued = await store.rotateAll(apiKeys.map(usableId), overlap);
      return isOne
        ? view.printIssued(expectFound(apiKeys[0]?.id ?? '', issued[0]))
        : view.printAllIssued(issued);
    },
  },
  {
    name: 'revoke',
    description: 'revoke a key, and the old one that it replaced',
    examples: [ID, '--owner acme --yes'],
    addArguments: addIdOrOwner,
    run: (tools, command) =>
      changeSelected(tools, command, 'revoked', (apiKeys) =>
        tools.store.revokeAll(
          apiKeys.map(({ id }) => id),
          new Date(),
        ),
      ),
  },
  {
    name: 'set-plan',
    description: 'move a key to another plan',
    examples: [`${ID} --plan business`, '--owner acme --plan business --yes'],
    addArguments(command) {
      addIdOrOwner(command);
      parse.addPlanOptions(command);
    },
    run(tools, command) {
      const choice = command.opts<PlanChoice>();
      return changeSelected(tools, command, `moved to the plan ${choice.plan}`, (apiKeys) =>
        tools.store.setPlanAll(apiKeys.map(usableId), choice),
      );
    },
  },
  {
    name: 'set-scopes',
    description: 'change what a key may do',
    examples: [`${ID} --scopes ${READ_SCOPES}`, `--owner acme --scopes ${READ_SCOPES} --yes`],
    addArguments(command) {
      addIdOrOwner(command);
      command.addOption(parse.createScopesOption().makeOptionMandatory());
    },
    run(tools, command) {
      const { scopes } = command.opts<{ scopes: readonly Scope[] }>();
      return changeSelected(tools, command, `given the scopes ${scopes}`, (apiKeys) =>
        tools.store.setScopesAll(apiKeys.map(usableId), scopes),
      );
    },
  },
  {
    name: 'set-owner',
    description: 'say whose key it is',
    examples: [`${ID} --owner acme`, `${ID} --none`],
    addArguments(command) {
      addId(command);
      command
        .option('--owner <owner>', 'a text to select keys by', parse.parseOwner)
        .addOption(new Option('--none', 'that of nobody in particular').conflicts('owner'))
        .hook('preAction', () => {
          if (Object.keys(command.opts()).every((name) => name === 'json'))
            command.error('error: an owner is needed: --owner, or --none');
        });
    },
    run: (tools, command) =>
      changeOne(tools, command, ({ id }) =>
        tools.store.setOwner(id, command.opts<{ owner?: string }>().owner ?? null),
      ),
  },
  {
    name: 'ban',
    description: 'deny all requests of a key for a time, in place of any ban that it has',
    examples: [`${ID} --for 8h`],
    addArguments(command) {
      addId(command);
      command.requiredOption('--for <duration>', 'how long, such as 8h', parse.parseBan);
    },
    run: (tools, command) =>
      changeOne(tools, command, (apiKey) => {
        const { for: seconds } = command.opts<{ for: number }>();
        return tools.store.banFor(usableId(apiKey), seconds, Math.min(seconds, MAX_BAN_SECONDS));
      }),
  },
  {
    name: 'unban',
    description: 'lift the ban of a key, so that its next one is not doubled',
    examples: [ID],
    addArguments: addId,
    run: (tools, command) =>
      changeOne(tools, command, ({ id, bannedUntil }) => {
        if (bannedUntil === null) throw new OperatorError(`The key ${id} has no ban: nothing was changed.`);
        return tools.store.unban(id);
      }),
  },
];

/** @param change resolves with undefined if the key is gone */
async function changeOne(
  tools: KeyTools,
  command: Command,
  change: (apiKey: ListedKey) => Promise<ApiKey | undefined>,
): Promise<view.Printed> {
  const apiKey = await findKey(tools, command);
  return view.printKey(expectFound(apiKey.id, await change(apiKey)));
}

/** The same for one key, or for all of an owner. */
async function changeSelected(
  tools: KeyTools,
  command: Command,
  wouldBe: string,
  change: (apiKeys: readonly ListedKey[]) => Promise<readonly ApiKey[]>,
): Promise<view.Printed> {
  const { apiKeys, isOne } = await selectKeys(tools, command, wouldBe);
  const changed = new Map((await change(apiKeys)).map((apiKey) => [apiKey.id, apiKey]));
  const listed = apiKeys.flatMap((apiKey) => {
    const found = changed.get(apiKey.id);
    return found === undefined ? [] : { ...apiKey, ...found };
  });
  return isOne
    ? view.printKey(expectFound(apiKeys[0]?.id ?? '', changed.get(apiKeys[0]?.id ?? '')))
    : view.printKeys(listed);
}

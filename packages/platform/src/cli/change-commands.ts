import { z } from 'zod';
import { MAX_BAN_SECONDS } from '../contract/bans.js';
import type { Definition } from '../definition/definition.js';
import type { ApiKey, ListedKey } from '../keys/api-key.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import type { PastOwner } from '../usage/store.js';
import * as parse from './arguments.js';
import { createCreateCommand } from './create-command.js';
import { defineCommand, type KeyCommand, type KeyTools } from './key-command.js';
import { expectFound, findKey, ID, ONE_KEY, selecting, selectKeys, usableId } from './key-selection.js';
import * as view from './key-view.js';
import { fitsPlan, planError, planExample, planMembers, scopes } from './store-arguments.js';

/** The commands that change keys, or issue one. */
export const createChangeCommands = (definition: Definition): readonly KeyCommand[] => [
  createCreateCommand(definition),
  defineCommand({
    name: 'rotate',
    description: 'replace a key: the new one is shown only this once',
    examples: [`${ID} --overlap 24h`, '--owner acme --overlap 24h --yes'],
    quietConflicts: ['owner'],
    input: selecting({
      overlap: parse.end
        .optional()
        .describe(
          'how long the old key keeps working, such as 24h (default: it ends at once). The old key of an earlier rotation ends in any case',
        ),
      again: parse.flag('even during the overlap of an earlier rotation, whose old key then ends at once'),
    }),
    async run(tools, input) {
      const { store } = tools;
      const { apiKeys, isOne } = await selectKeys(tools, input, 'rotated');
      const ids = apiKeys.map(usableId);
      const issued = await store.rotateAll(ids, input.overlap, input.again);
      if (issued.length === 0) await refuseOverlapping(store, ids);
      return isOne
        ? view.printIssued(definition, expectFound(apiKeys[0]?.id ?? '', issued[0]))
        : view.printAllIssued(definition, issued);
    },
  }),
  defineCommand({
    name: 'revoke',
    description: 'revoke a key, and the old key that it replaced',
    examples: [ID, '--owner acme --yes'],
    input: selecting({}),
    run: (tools, input) =>
      changeSelected(tools, input, 'revoked', (apiKeys) =>
        tools.store.revokeAll(
          apiKeys.map(({ id }) => id),
          new Date(),
        ),
      ),
  }),
  defineCommand({
    name: 'set-plan',
    description: 'move a key to another plan',
    examples: [
      `${ID} --plan ${planExample(definition, 2)}`,
      `--owner acme --plan ${planExample(definition, 2)} --yes`,
    ],
    input: selecting(planMembers(definition)).refine(fitsPlan(definition), { error: planError(definition) }),
    run: (tools, input) =>
      changeSelected(tools, input, `moved to the plan ${input.plan}`, (apiKeys) =>
        tools.store.setPlanAll(apiKeys.map(usableId), input),
      ),
  }),
  defineCommand({
    name: 'set-scopes',
    description: 'change what a key may do',
    examples: [
      `${ID} --scopes ${listReadScopes(definition)}`,
      `--owner acme --scopes ${listReadScopes(definition)} --yes`,
    ],
    input: selecting({ scopes: scopes(definition) }),
    run: (tools, input) =>
      changeSelected(tools, input, `given the scopes ${input.scopes}`, (apiKeys) =>
        tools.store.setScopesAll(apiKeys.map(usableId), input.scopes),
      ),
  }),
  defineCommand({
    name: 'set-owner',
    description: 'say whose key it is: usage up to today (UTC) stays on the bill of its owner so far',
    examples: [`${ID} --owner acme`, `${ID} --none`],
    input: z
      .strictObject({
        ...ONE_KEY,
        owner: parse.owner.describe('a text to select keys by'),
        none: parse.flag('the key is that of nobody in particular'),
      })
      .refine(({ owner, none }) => none || owner !== undefined, {
        error: 'an owner is needed: {owner}, or {none}',
      })
      .refine(({ owner, none }) => !none || owner === undefined, {
        error: '{none} cannot be used with {owner}',
      }),
    async run(tools, { id, owner = null }) {
      const found = await findKey(tools, id);
      const apiKey = expectFound(found.id, await tools.store.setOwner(found.id, owner));
      const pastOwners = await tools.usage.readPastOwners(found.id);
      return view.printKey(definition, apiKey, { pastOwners }, pastOwners.map(toBillField));
    },
  }),
  defineCommand({
    name: 'ban',
    description: 'deny all requests of a key for a time, which replaces any other ban',
    examples: [`${ID} --for 8h`],
    input: z.strictObject({ ...ONE_KEY, for: parse.ban.describe('how long, such as 8h') }),
    run: (tools, input) =>
      changeOne(tools, input, (apiKey) =>
        tools.store.banFor(usableId(apiKey), input.for, Math.min(input.for, MAX_BAN_SECONDS)),
      ),
  }),
  defineCommand({
    name: 'unban',
    description: 'lift the ban of a key, so that its next ban is not doubled',
    examples: [ID],
    input: z.strictObject(ONE_KEY),
    run: (tools, input) =>
      changeOne(tools, input, ({ id, bannedUntil }) => {
        if (bannedUntil === null) throw new OperatorError(`The key ${id} has no ban: nothing was changed.`);
        return tools.store.unban(id);
      }),
  }),
];

const listReadScopes = ({ scopes }: Definition) => scopes.filter((scope) => scope.endsWith(':read'));

const toBillField = ({ owner, until }: PastOwner) =>
  ['Usage', `up to ${until} (UTC) is on the bill of ${owner === null ? 'nobody' : owner}`] as const;

/** @param change resolves with undefined if the key is gone */
async function changeOne(
  tools: KeyTools,
  { id }: { readonly id: string },
  change: (apiKey: ListedKey) => Promise<ApiKey | undefined>,
): Promise<view.Printed> {
  const apiKey = await findKey(tools, id);
  return view.printKey(tools.definition, expectFound(apiKey.id, await change(apiKey)));
}

/** Says why nothing was rotated, if the keys exist. The clock of the database decides whether an overlap lasts. */
async function refuseOverlapping(store: KeyTools['store'], ids: readonly string[]): Promise<void> {
  const found = await Promise.all(ids.map((id) => store.find(id)));
  const overlaps = found.flatMap((apiKey) =>
    apiKey?.previousExpiresAt && apiKey.revokedAt === null
      ? `${apiKey.id} until ${apiKey.previousExpiresAt.toISOString().slice(0, 16)}Z`
      : [],
  );
  if (overlaps.length > 0)
    throw new OperatorError(
      `Nothing was changed: the overlap of an earlier rotation has not ended: ${overlaps.join(', ')}. Wait until it ends, or rotate with {again}, which ends the older key at once.`,
    );
}

/** Changes one key, or all keys of an owner. */
async function changeSelected(
  tools: KeyTools,
  selection: Parameters<typeof selectKeys>[1],
  wouldBe: string,
  change: (apiKeys: readonly ListedKey[]) => Promise<readonly ApiKey[]>,
): Promise<view.Printed> {
  const { apiKeys, isOne } = await selectKeys(tools, selection, wouldBe);
  const changed = new Map((await change(apiKeys)).map((apiKey) => [apiKey.id, apiKey]));
  const listed = apiKeys.flatMap((apiKey) => {
    const found = changed.get(apiKey.id);
    return found === undefined ? [] : { ...apiKey, ...found };
  });
  return isOne
    ? view.printKey(tools.definition, expectFound(apiKeys[0]?.id ?? '', changed.get(apiKeys[0]?.id ?? '')))
    : view.printKeys(tools.definition, listed);
}

import { SCOPES } from '@animal-store/definition/scopes';
import { z } from 'zod';
import { createOnce } from '../keys/once.js';
import * as parse from './arguments.js';
import { defineCommand } from './command.js';
import * as view from './key-view.js';

export const CREATE = defineCommand({
  name: 'create',
  description: 'issue a key, which is shown only this once',
  examples: [
    `--name shop --plan ${parse.planExample(1)} --owner acme --expires 30d`,
    `--name default --plan ${parse.planExample(0)} --owner cus_1 --once --json`,
    ...parse.CUSTOM_PLANS.map(
      (plan) => `--name warehouse --plan ${plan} --per-minute 5000 --per-day 1000000 --json`,
    ),
    `--name storefront --plan ${parse.planExample(0)} --scopes ${SCOPES[0]} -q`,
  ],
  quietConflicts: ['once'],
  input: z
    .strictObject({
      name: parse.name.describe('who or what the key is for'),
      owner: parse.owner.describe('whose key it is: a text to select keys by'),
      ...parse.planMembers,
      scopes: parse.scopes.optional(),
      expires: parse.end.optional().describe('how long the key is valid, such as 30d'),
      once: parse.flag('with --owner: if a key of this owner and name is in use, show that key instead'),
    })
    .refine(parse.fitsPlan, { error: parse.PLAN_ERROR })
    .refine(({ once, owner }) => !once || owner !== undefined, { error: '{once} needs {owner}' }),
  async run({ store }, { expires, once, owner, ...options }) {
    const input = { ...options, owner, expiresAt: expires };
    if (!once || owner === undefined) return view.printIssued(await store.create(input));
    const { apiKey, key } = await createOnce(store, { ...input, owner });
    return key === undefined ? view.printInUse(apiKey) : view.printIssued({ apiKey, key }, { isNew: true });
  },
});

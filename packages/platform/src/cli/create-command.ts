import { z } from 'zod';
import type { Definition } from '../definition/definition.js';
import { createOnce } from '../keys/create-once.js';
import * as parse from './arguments.js';
import { defineCommand } from './key-command.js';
import * as view from './key-view.js';
import { customPlans, fitsPlan, planError, planExample, planMembers, scopes } from './store-arguments.js';

export const createCreateCommand = (definition: Definition) =>
  defineCommand({
    name: 'create',
    description: 'issue a key, which is shown only this once',
    examples: [
      `--name shop --plan ${planExample(definition, 1)} --owner acme --expires 30d`,
      `--name default --plan ${planExample(definition, 0)} --owner cus_1 --once --json`,
      ...customPlans(definition).map(
        (plan) => `--name warehouse --plan ${plan} --per-minute 5000 --per-day 1000000 --json`,
      ),
      `--name storefront --plan ${planExample(definition, 0)} --scopes ${definition.scopes[0]} -q`,
    ],
    quietConflicts: ['once'],
    input: z
      .strictObject({
        name: parse.name.describe('who or what the key is for'),
        owner: parse.owner.describe('whose key it is: a text to select keys by'),
        ...planMembers(definition),
        scopes: scopes(definition, `; by default ${definition.defaultScopes?.join(',') ?? 'all'}`).optional(),
        expires: parse.end.optional().describe('how long the key is valid, such as 30d'),
        once: parse.flag('with --owner: if a key of this owner and name is in use, show that key instead'),
      })
      .refine(fitsPlan(definition), { error: planError(definition) })
      .refine(({ once, owner }) => !once || owner !== undefined, { error: '{once} needs {owner}' }),
    async run({ store }, { expires, once, owner, ...options }) {
      const input = { ...options, owner, expiresAt: expires };
      if (!once || owner === undefined) return view.printIssued(definition, await store.create(input));
      const { apiKey, key } = await createOnce(store, { ...input, owner });
      return key === undefined
        ? view.printInUse(definition, apiKey)
        : view.printIssued(definition, { apiKey, key }, { isNew: true });
    },
  });

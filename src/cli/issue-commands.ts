import type { Command } from 'commander';
import type { Scope } from '../contract/scopes.js';
import { OperatorError } from '../errors/operator-error.js';
import type { ApiKey } from '../keys/store.js';
import {
  addExamples,
  addIdCommand,
  addPlanOptions,
  addQuietOption,
  createScopesOption,
  type Output,
  type PlanOptions,
  parseDuration,
  parseName,
  readPlan,
} from './arguments.js';
import { expectFound, findKey } from './find-key.js';
import type { KeyCommandOptions } from './key-tools.js';
import { formatKey, toKeyJson } from './key-view.js';
import { toJsonLine } from './tables.js';

/*
 * The commands that print a key: nobody can see it again.
 */

export function addCreate(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  const create = keys
    .command('create')
    .description('issue a key, which is shown only this once')
    .requiredOption('--name <name>', 'who or what the key is for', parseName)
    .option(
      '--expires <duration>',
      'how long it is valid: a number and s, m, h or d, such as 30d',
      parseDuration,
    )
    .addOption(createScopesOption())
    .option('--json', 'print one JSON object');
  addQuietOption(create);
  addExamples(create, [
    'create --name shop --plan pro --expires 30d',
    'create --name warehouse --plan enterprise --per-minute 5000 --per-day 1000000 --json',
    'create --name storefront --plan free --scopes pets:read -q',
  ]);
  addPlanOptions(create).action(
    async (options: PlanOptions & Output & { name: string; expires?: number; scopes?: Scope[] }) => {
      const { name, expires, scopes } = options;
      const expiresAt = expires === undefined ? null : new Date(Date.now() + expires);
      const input = { name, expiresAt, ...(scopes && { scopes }), ...readPlan(create, options) };
      await withKeys(async ({ store }) => write(formatIssued(await store.create(input), options)));
    },
  );
}

export function addRotate(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  const description = 'replace a key: the new one is shown only this once';
  const rotate = addIdCommand(keys, { name: 'rotate', description, example: ' --overlap 24h' });
  addQuietOption(rotate)
    .option(
      '--overlap <duration>',
      'how long the old key keeps working, such as 24h (default: it ends at once). The old key of an earlier rotation ends in any case',
      parseDuration,
    )
    .action((prefix: string, { overlap, ...output }: Output & { overlap?: number }) =>
      withKeys(async ({ store }) => {
        const { id, revokedAt } = await findKey(store, prefix);
        if (revokedAt !== null) {
          throw new OperatorError(`The key ${id} is revoked for good: create a new one.`);
        }
        const overlapEndsAt = overlap === undefined ? undefined : new Date(Date.now() + overlap);
        write(formatIssued(expectFound(id, await store.rotate(id, overlapEndsAt)), output));
      }),
    );
}

function formatIssued({ apiKey, key }: { apiKey: ApiKey; key: string }, { json, quiet }: Output): string {
  const now = Date.now();
  if (json) return toJsonLine({ ...toKeyJson(apiKey, now), key });
  if (quiet) return `${key}\n`;
  return `${formatKey(apiKey, now)}\n${key}\n\nKeep it now: it is not shown again.\n`;
}

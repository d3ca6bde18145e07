import type { Command } from 'commander';
import type { Scope } from '../contract/scopes.js';
import { OperatorError } from '../errors/operator-error.js';
import { nextBanSeconds } from '../keys/bans.js';
import type { ApiKey, KeyStore } from '../keys/store.js';
import {
  addExamples,
  addIdCommand,
  addPlanOptions,
  addQuietOption,
  createScopesOption,
  type Output,
  type PlanOptions,
  parseDuration,
  parseId,
  parseName,
  readPlan,
} from './arguments.js';
import { expectFound, findKey, type KeyCommandOptions } from './key-tools.js';
import { formatKey, formatKeys, toKeyJson, toLimitFields } from './key-view.js';
import { formatKeyUsage, formatUsage, summariseKeys, summariseUsage, toJsonLine } from './tables.js';

/** What a command does to a key; resolves with what it is then, undefined if it is gone */
type Update = (store: KeyStore, apiKey: ApiKey) => Promise<ApiKey | undefined>;

/** The commands that issue and manage keys. Invalid arguments are reported before anything is opened. */
export function addKeyCommands(program: Command, options: KeyCommandOptions): void {
  const keys = program
    .command('keys')
    .description('issue and manage API keys')
    .version(program.version() ?? '')
    .showHelpAfterError('(--help shows the options of a command)');
  addExamples(keys, ['create --name shop --plan pro', 'list', 'show 0b54e7c0', 'revoke 0b54e7c0']);
  addCreate(keys, options);
  addList(keys, options);
  addShow(keys, options);
  addUsage(keys, options);
  addRotate(keys, options);
  addChanges(keys, options);
}

function addCreate(keys: Command, { withKeys, write }: KeyCommandOptions): void {
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

function addList(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  const list = keys.command('list').description('show all keys').option('--json', 'print one JSON array');
  addExamples(list, ['list', 'list --json']).action((output: Output) =>
    withKeys(async ({ store }) => {
      const apiKeys = await store.list();
      const now = Date.now();
      const toJson = () => toJsonLine(apiKeys.map((apiKey) => toKeyJson(apiKey, now)));
      write(output.json ? toJson() : formatKeys(apiKeys, now));
    }),
  );
}

function addShow(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  const show = addIdCommand(keys, 'show', 'show one key, the requests it has left, and its ban');
  show.action((id: string, { json }: Output) =>
    withKeys(async ({ store, readWindows }) => {
      const apiKey = await findKey(store, id);
      const windows = await readWindows(apiKey);
      const now = Date.now();
      const limits = { windows: windows ?? null, nextBanSeconds: nextBanSeconds(apiKey, now) };
      const toText = () => formatKey(apiKey, now, toLimitFields(apiKey, windows, now));
      write(json ? toJsonLine({ ...toKeyJson(apiKey, now), ...limits }) : toText());
    }),
  );
}

function addUsage(keys: Command, { withKeys, listOperations, write }: KeyCommandOptions): void {
  const command = keys
    .command('usage')
    .description(`show the requests of the last 30 days (UTC), up to half a minute ago`)
    .argument('[id]', 'one key, by operation and day; without it, all keys', parseId)
    .option('--deprecated', 'only the keys that call deprecated operations')
    .option('--json', 'print one JSON object, or for all keys an array');
  addExamples(command, ['usage', 'usage --deprecated', 'usage 0b54e7c0']);
  command.action((prefix: string | undefined, { json, deprecated }: Output & { deprecated?: boolean }) => {
    if (prefix !== undefined && deprecated)
      command.error('error: --deprecated is for all keys: leave out the id');
    return withKeys(async ({ store, usage }) => {
      const operations = await listOperations();
      if (prefix === undefined) {
        const all = summariseKeys(await usage.readKeys(Date.now()), operations);
        const chosen = all.filter(({ deprecatedRequests }) => !deprecated || deprecatedRequests > 0);
        return write(json ? toJsonLine(chosen) : formatKeyUsage(chosen));
      }
      const { id, name } = await findKey(store, prefix);
      const summary = summariseUsage(await usage.read(id, Date.now()), operations);
      write(json ? toJsonLine({ id, name, ...summary }) : formatUsage(summary, operations));
    });
  });
}

function addRotate(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  const description = 'replace a key: the new one is shown only this once';
  const rotate = addIdCommand(keys, 'rotate', description, ' --overlap 24h');
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

/** The commands that find a key, change it, and print it as it is then. */
function addChanges(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  const change = (prefix: string, { json }: Output, update: Update) =>
    withKeys(async ({ store }) => {
      const found = await findKey(store, prefix);
      const apiKey = expectFound(found.id, await update(store, found));
      const now = Date.now();
      write(json ? toJsonLine(toKeyJson(apiKey, now)) : formatKey(apiKey, now));
    });
  const revoke = addIdCommand(keys, 'revoke', 'end a key, and the old one that it replaced');
  revoke.action((prefix: string, output: Output) =>
    change(prefix, output, (store, { id }) => store.revoke(id, new Date())),
  );
  const setPlan = addIdCommand(keys, 'set-plan', 'move a key to another plan', ' --plan business');
  addPlanOptions(setPlan).action((prefix: string, output: PlanOptions & Output) => {
    const choice = readPlan(setPlan, output);
    return change(prefix, output, (store, apiKey) => store.setPlan(usableId(apiKey), choice));
  });
  const example = ' --scopes pets:read,orders:read';
  const setScopes = addIdCommand(keys, 'set-scopes', 'change what a key may do', example);
  setScopes
    .addOption(createScopesOption().makeOptionMandatory())
    .action((prefix: string, { scopes, ...output }: Output & { scopes: Scope[] }) =>
      change(prefix, output, (store, apiKey) => store.setScopes(usableId(apiKey), scopes)),
    );
  const unban = addIdCommand(keys, 'unban', 'lift the ban of a key, so that its next one is not doubled');
  unban.action((prefix: string, output: Output) =>
    change(prefix, output, (store, { id, bannedUntil }) => {
      if (bannedUntil === null) throw new OperatorError(`The key ${id} has no ban: nothing was changed.`);
      return store.unban(id);
    }),
  );
}

/** @throws OperatorError when the key is revoked, which nothing undoes */
function usableId({ id, revokedAt }: ApiKey): string {
  if (revokedAt === null) return id;
  throw new OperatorError(
    `The key ${id} is revoked, so nothing was changed: a revoked key stays so. Issue another with: keys create`,
  );
}

function formatIssued({ apiKey, key }: { apiKey: ApiKey; key: string }, { json, quiet }: Output): string {
  const now = Date.now();
  if (json) return toJsonLine({ ...toKeyJson(apiKey, now), key });
  if (quiet) return `${key}\n`;
  return `${formatKey(apiKey, now)}\n${key}\n\nKeep it now: it is not shown again.\n`;
}

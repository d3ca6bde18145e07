import type { Command } from 'commander';
import type { Scope } from '../contract/scopes.js';
import { OperatorError } from '../errors/operator-error.js';
import { nextBanSeconds } from '../keys/bans.js';
import type { ApiKey, KeyStore } from '../keys/store.js';
import {
  addExamples,
  addIdCommand,
  addPlanOptions,
  createScopesOption,
  type Output,
  type PlanOptions,
  readPlan,
} from './arguments.js';
import { EXIT_CODE_HELP } from './exit-codes.js';
import { expectFound, findKey } from './find-key.js';
import { addCreate, addRotate } from './issue-commands.js';
import type { KeyCommandOptions } from './key-tools.js';
import { formatKey, formatKeys, toKeyJson, toLimitFields } from './key-view.js';
import { formatUsage, summariseUsage, toJsonLine } from './tables.js';

/** The commands that issue and manage keys. Invalid arguments are reported before anything is opened. */
export function addKeyCommands(program: Command, options: KeyCommandOptions): void {
  const keys = program
    .command('keys')
    .description('issue and manage API keys')
    .version(program.version() ?? '')
    .showHelpAfterError('(--help shows the options of a command)');
  addExamples(keys, ['create --name shop --plan pro', 'list', 'show 0b54e7c0', 'revoke 0b54e7c0']);
  keys.addHelpText('after', EXIT_CODE_HELP);
  addCreate(keys, options);
  addList(keys, options);
  addShow(keys, options);
  addUsage(keys, options);
  addRotate(keys, options);
  addRevoke(keys, options);
  addSetPlan(keys, options);
  addSetScopes(keys, options);
  addUnban(keys, options);
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
  const description = 'show one key, the requests it has left, and its ban';
  addIdCommand(keys, { name: 'show', description }).action((id: string, { json }: Output) =>
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
  const description =
    'show the requests of a key in the last 30 days (UTC) by operation, up to some seconds ago';
  addIdCommand(keys, { name: 'usage', description }).action((prefix: string, { json }: Output) =>
    withKeys(async ({ store, usage }) => {
      const { id, name } = await findKey(store, prefix);
      const operations = await listOperations();
      const summary = summariseUsage(await usage.read(id, Date.now()), operations);
      write(json ? toJsonLine({ id, name, ...summary }) : formatUsage(summary, operations));
    }),
  );
}

function addRevoke(keys: Command, options: KeyCommandOptions): void {
  const description = 'end a key, and the old one that it replaced';
  const revoke = addIdCommand(keys, { name: 'revoke', description });
  revoke.action((prefix: string, output: Output) =>
    change(options, prefix, output, (store, { id }) => store.revoke(id, new Date())),
  );
}

function addSetPlan(keys: Command, options: KeyCommandOptions): void {
  const description = 'move a key to another plan';
  const setPlan = addPlanOptions(
    addIdCommand(keys, { name: 'set-plan', description, example: ' --plan business' }),
  );
  setPlan.action(async (prefix: string, output: PlanOptions & Output) => {
    const choice = readPlan(setPlan, output);
    await change(options, prefix, output, (store, apiKey) => {
      expectUsable(apiKey);
      return store.setPlan(apiKey.id, choice);
    });
  });
}

function addSetScopes(keys: Command, options: KeyCommandOptions): void {
  const description = 'change what a key may do';
  const example = ' --scopes pets:read,orders:read';
  const setScopes = addIdCommand(keys, { name: 'set-scopes', description, example });
  setScopes
    .addOption(createScopesOption().makeOptionMandatory())
    .action((prefix: string, { scopes, ...output }: Output & { scopes: Scope[] }) =>
      change(options, prefix, output, (store, apiKey) => {
        expectUsable(apiKey);
        return store.setScopes(apiKey.id, scopes);
      }),
    );
}

function addUnban(keys: Command, options: KeyCommandOptions): void {
  const description = 'lift the ban of a key, so that its next one is not doubled';
  const unban = addIdCommand(keys, { name: 'unban', description });
  unban.action((prefix: string, output: Output) =>
    change(options, prefix, output, (store, { id, bannedUntil }) => {
      if (bannedUntil === null) throw new OperatorError(`The key ${id} has no ban: nothing was changed.`);
      return store.unban(id);
    }),
  );
}

/** Finds a key, changes it, and prints it as it is then. */
async function change(
  { withKeys, write }: KeyCommandOptions,
  prefix: string,
  { json }: Output,
  update: (store: KeyStore, apiKey: ApiKey) => Promise<ApiKey | undefined>,
): Promise<void> {
  await withKeys(async ({ store }) => {
    const found = await findKey(store, prefix);
    const apiKey = expectFound(found.id, await update(store, found));
    const now = Date.now();
    write(json ? toJsonLine(toKeyJson(apiKey, now)) : formatKey(apiKey, now));
  });
}

/** @throws OperatorError when the key is revoked, which nothing undoes */
function expectUsable({ id, revokedAt }: ApiKey): void {
  if (revokedAt === null) return;
  throw new OperatorError(
    `The key ${id} is revoked, so nothing was changed: a revoked key stays so. Issue another with: keys create`,
  );
}

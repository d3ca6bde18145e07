import type { Command } from 'commander';
import { nextBanSeconds } from '../keys/bans.js';
import type { ApiKey, KeyStore } from '../keys/store.js';
import type { UsageStore } from '../keys/usage-store.js';
import type { LimitStatus } from '../limits/rate-limit-result.js';
import { OperatorError } from '../operator-error.js';
import {
  addIdCommand,
  addPlanOptions,
  type Output,
  type PlanOptions,
  parseDuration,
  parseName,
  readPlan,
} from './arguments.js';
import { formatKeys, formatLimits, formatUsage, type OperationName, summariseUsage } from './tables.js';

/** The stores that a command uses, open while it runs. */
interface KeyTools {
  readonly store: KeyStore;
  readonly usage: UsageStore;
  /** The windows of a key in Redis; undefined without REDIS_URL, when running services count in their own memory */
  readonly readWindows: (apiKey: ApiKey) => Promise<readonly LimitStatus[] | undefined>;
}

export interface KeyCommandOptions {
  /** Opens the tools, and closes them afterwards */
  readonly withKeys: (run: (tools: KeyTools) => Promise<void>) => Promise<void>;
  readonly operations: readonly OperationName[];
  readonly write: (text: string) => void;
}

/** The commands that issue and manage keys. Invalid arguments are reported before anything is opened. */
export function addKeyCommands(program: Command, options: KeyCommandOptions): void {
  const keys = program
    .command('keys')
    .description('issue and manage API keys')
    .showHelpAfterError('(--help shows the options of a command)');
  addCreate(keys, options);
  addList(keys, options);
  addShow(keys, options);
  addUsage(keys, options);
  addRotate(keys, options);
  addRevoke(keys, options);
  addSetPlan(keys, options);
  addUnban(keys, options);
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
    .option('--json', 'print one JSON object');
  addPlanOptions(create).action(
    async (options: PlanOptions & Output & { name: string; expires?: number }) => {
      const { name, expires } = options;
      const expiresAt = expires === undefined ? null : new Date(Date.now() + expires);
      const input = { name, expiresAt, ...readPlan(create, options) };
      await withKeys(async ({ store }) => write(formatIssued(await store.create(input), options)));
    },
  );
}

function addList(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  const list = keys.command('list').description('show all keys').option('--json', 'print one JSON array');
  list.action((output: Output) =>
    withKeys(async ({ store }) => {
      const apiKeys = await store.list();
      write(format(apiKeys, output, apiKeys));
    }),
  );
}

function addShow(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  addIdCommand(keys, 'show', 'show one key, the requests it has left, and its ban').action((id, output) =>
    withKeys(async ({ store, readWindows }) => {
      const apiKey = expectFound(id, await store.find(id));
      write(formatState(apiKey, await readWindows(apiKey), output));
    }),
  );
}

function addUsage(keys: Command, { withKeys, operations, write }: KeyCommandOptions): void {
  const usage = addIdCommand(
    keys,
    'usage',
    'show the requests of a key in the last 30 days (UTC) by operation, up to some seconds ago',
  );
  usage.action((id: string, { json }: Output) =>
    withKeys(async ({ store, usage }) => {
      const { name } = expectFound(id, await store.find(id));
      const summary = summariseUsage(await usage.read(id, Date.now()), operations);
      write(json ? `${JSON.stringify({ id, name, ...summary })}\n` : formatUsage(summary, operations));
    }),
  );
}

function addRotate(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  addIdCommand(keys, 'rotate', 'replace a key: the new one is shown only this once')
    .option(
      '--overlap <duration>',
      'how long the old key keeps working, such as 24h (default: it ends at once). The old key of an earlier rotation ends in any case',
      parseDuration,
    )
    .action((id: string, { overlap, ...output }: Output & { overlap?: number }) =>
      withKeys(async ({ store }) => {
        if (expectFound(id, await store.find(id)).revokedAt !== null) {
          throw new OperatorError(`The key ${id} is revoked for good: create a new one.`);
        }
        const overlapEndsAt = overlap === undefined ? undefined : new Date(Date.now() + overlap);
        write(formatIssued(expectFound(id, await store.rotate(id, overlapEndsAt)), output));
      }),
    );
}

function addRevoke(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  addIdCommand(keys, 'revoke', 'end a key, and the old one that it replaced').action((id, output) =>
    withKeys(async ({ store }) => {
      const apiKey = expectFound(id, await store.revoke(id, new Date()));
      write(format([apiKey], output, apiKey));
    }),
  );
}

function addSetPlan(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  const setPlan = addPlanOptions(addIdCommand(keys, 'set-plan', 'move a key to another plan'));
  setPlan.action(async (id: string, options: PlanOptions & Output) => {
    const choice = readPlan(setPlan, options);
    await withKeys(async ({ store }) => {
      const apiKey = expectFound(id, await store.setPlan(id, choice));
      write(format([apiKey], options, apiKey));
    });
  });
}

function addUnban(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  addIdCommand(keys, 'unban', 'lift the ban of a key, so that its next one is not doubled').action(
    (id, output) =>
      withKeys(async ({ store }) => {
        const apiKey = expectFound(id, await store.unban(id));
        write(format([apiKey], output, apiKey));
      }),
  );
}

function format(apiKeys: readonly ApiKey[], { json }: Output, value: unknown): string {
  return json ? `${JSON.stringify(value)}\n` : formatKeys(apiKeys, Date.now());
}

function formatIssued({ apiKey, key }: { apiKey: ApiKey; key: string }, output: Output): string {
  const text = format([apiKey], output, { ...apiKey, key });
  return output.json ? text : `${text}\n${key}\n\nKeep it now: it is not shown again.\n`;
}

function formatState(apiKey: ApiKey, windows: readonly LimitStatus[] | undefined, output: Output): string {
  const now = Date.now();
  const state = { ...apiKey, windows: windows ?? null, nextBanSeconds: nextBanSeconds(apiKey, now) };
  const text = format([apiKey], output, state);
  return output.json ? text : `${text}\n${formatLimits(apiKey, windows, now)}`;
}

function expectFound<T>(id: string, found: T | undefined): T {
  if (found === undefined)
    throw new OperatorError(`There is no key with the id ${id}: "keys list" shows all.`);
  return found;
}

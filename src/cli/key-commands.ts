import type { Command } from 'commander';
import type { ApiKey, KeyStore } from '../keys/store.js';
import type { UsageStore } from '../keys/usage-store.js';
import type { LimitDesk } from '../limits/desk.js';
import type { Standing } from '../limits/limiter.js';
import { limitsOf } from '../limits/plans.js';
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
import { describeKeys, describeStandings } from './key-tables.js';
import { describeUsage, type OperationName, summarise } from './usage-tables.js';

/** What the commands work with, open for as long as one runs. */
interface KeyTools {
  readonly store: KeyStore;
  readonly usage: UsageStore;
  readonly desk: LimitDesk;
  /** Tells every node that a key has changed */
  readonly announce: (keyId: string) => Promise<void>;
}

/** What the commands need of the process they run in. */
export interface KeyCommandOptions {
  /** Opens the keys and their limits, and closes them when the use has ended */
  readonly withKeys: (use: (tools: KeyTools) => Promise<void>) => Promise<void>;
  readonly operations: readonly OperationName[];
  readonly write: (text: string) => void;
}

/** The commands that issue and manage keys. Bad arguments are reported with what would be right, before all else. */
export function addKeyCommands(program: Command, options: KeyCommandOptions): void {
  const keys = program
    .command('keys')
    .description('issue and manage API keys')
    .showHelpAfterError('(--help shows what a command takes)');
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
    .description('issue a key, which is shown this once')
    .requiredOption('--name <name>', 'whom or what the key is for', parseName)
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
      const wanted = { name, expiresAt, ...readPlan(create, options) };
      await withKeys(async ({ store }) => write(describeIssued(await store.create(wanted), options)));
    },
  );
}

function addList(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  const list = keys.command('list').description('show all keys').option('--json', 'print one JSON array');
  list.action((output: Output) =>
    withKeys(async ({ store }) => {
      const apiKeys = await store.list();
      write(describe(apiKeys, output, apiKeys));
    }),
  );
}

function addShow(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  const show = addIdCommand(keys, 'show', 'show one key, what is left of its limits, and its ban');
  show.action((id, output) =>
    withKeys(async ({ store, desk }) => {
      const apiKey = known(id, await store.find(id));
      write(describeStanding(apiKey, await desk.inspect(id, limitsOf(apiKey)), output));
    }),
  );
}

function addUsage(keys: Command, { withKeys, operations, write }: KeyCommandOptions): void {
  const usage = addIdCommand(
    keys,
    'usage',
    'show the requests of a key in the last 30 days of UTC by operation, up to some seconds ago',
  );
  usage.action((id: string, { json }: Output) =>
    withKeys(async ({ store, usage }) => {
      const { name } = known(id, await store.find(id));
      const summary = summarise(await usage.read(id, Date.now()), operations);
      write(json ? `${JSON.stringify({ id, name, ...summary })}\n` : describeUsage(summary, operations));
    }),
  );
}

function addRotate(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  addIdCommand(keys, 'rotate', 'replace a key: the new one is shown this once')
    .option(
      '--overlap <duration>',
      'how long the old key still works, such as 24h; it ends at once when left out. One that an earlier rotation left in force ends',
      parseDuration,
    )
    .action((id: string, { overlap, ...output }: Output & { overlap?: number }) =>
      withKeys(async ({ store, announce }) => {
        if (known(id, await store.find(id)).revokedAt !== null) {
          throw new OperatorError(`The key ${id} is revoked for good: create a new one.`);
        }
        const oldUntil = overlap === undefined ? undefined : new Date(Date.now() + overlap);
        const issued = known(id, await store.rotate(id, oldUntil));
        write(describeIssued(issued, output));
        await announce(id);
      }),
    );
}

function addRevoke(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  addIdCommand(keys, 'revoke', 'end a key, and the one that it replaced').action((id, output) =>
    withKeys(async ({ store, announce }) => {
      const apiKey = known(id, await store.revoke(id, new Date()));
      await announce(id);
      write(describe([apiKey], output, apiKey));
    }),
  );
}

function addSetPlan(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  const setPlan = addPlanOptions(addIdCommand(keys, 'set-plan', 'put a key on another plan'));
  setPlan.action(async (id: string, options: PlanOptions & Output) => {
    const choice = readPlan(setPlan, options);
    await withKeys(async ({ store, announce }) => {
      const apiKey = known(id, await store.setPlan(id, choice));
      await announce(id);
      write(describe([apiKey], options, apiKey));
    });
  });
}

function addUnban(keys: Command, { withKeys, write }: KeyCommandOptions): void {
  const unban = addIdCommand(keys, 'unban', 'lift the ban of a key, and forget those before it');
  unban.action((id, output) =>
    withKeys(async ({ store, desk }) => {
      const apiKey = known(id, await store.find(id));
      write(describeStanding(apiKey, await desk.unban(id, limitsOf(apiKey)), output));
    }),
  );
}

function describe(apiKeys: readonly ApiKey[], { json }: Output, whole: unknown): string {
  return json ? `${JSON.stringify(whole)}\n` : describeKeys(apiKeys, Date.now());
}

function describeIssued({ apiKey, key }: { apiKey: ApiKey; key: string }, output: Output): string {
  const text = describe([apiKey], output, { ...apiKey, key });
  return output.json ? text : `${text}\n${key}\n\nKeep it now: it is not shown again.\n`;
}

function describeStanding(apiKey: ApiKey, standings: Standing[], output: Output): string {
  const text = describe([apiKey], output, { ...apiKey, standings });
  return output.json ? text : `${text}\n${describeStandings(standings)}`;
}

function known<T>(id: string, found: T | undefined): T {
  if (found === undefined)
    throw new OperatorError(`There is no key with the id ${id}: "keys list" shows all.`);
  return found;
}

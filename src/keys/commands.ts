import { type Command, InvalidArgumentError, Option } from 'commander';
import type { LimitDesk } from '../limits/desk.js';
import type { Standing } from '../limits/limiter.js';
import { limitsOf } from '../limits/plans.js';
import { OperatorError } from '../operator-error.js';
import { describeKeys, describeStandings } from './listing.js';
import type { ApiKey, KeyStore, Plan, PlanChoice } from './store.js';

const PLANS: readonly Plan[] = ['free', 'pro', 'business', 'enterprise'];
const DURATION_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const HUNDRED_YEARS_MS = 36_525 * 86_400_000;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
const LIMIT_MAX = 2 ** 31 - 1;

interface PlanOptions {
  readonly plan: Plan;
  readonly perMinute?: number;
  readonly perDay?: number;
}

interface Output {
  readonly json?: true;
}

/** What the commands need of the process they run in. */
export interface KeyCommandOptions {
  /** Opens the keys and their limits, and closes them when the use has ended */
  readonly withKeys: (use: (store: KeyStore, desk: LimitDesk) => Promise<void>) => Promise<void>;
  readonly write: (text: string) => void;
}

/** The commands that issue and manage keys. Bad arguments are reported with what would be right, before all else. */
export function addKeyCommands(program: Command, { withKeys, write }: KeyCommandOptions): void {
  const keys = program.command('keys').description('issue and manage API keys');
  const show = (apiKeys: ApiKey[], { json }: Output, whole: unknown) =>
    write(json ? `${JSON.stringify(whole)}\n` : describeKeys(apiKeys, Date.now()));
  const showIssued = ({ apiKey, key }: { apiKey: ApiKey; key: string }, output: Output) => {
    show([apiKey], output, { ...apiKey, key });
    if (!output.json) write(`\n${key}\n\nKeep it now: it is not shown again.\n`);
  };
  const showStandings = (apiKey: ApiKey, standings: Standing[], output: Output) => {
    show([apiKey], output, { ...apiKey, standings });
    if (!output.json) write(`\n${describeStandings(standings)}`);
  };

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
      await withKeys(async (store) => showIssued(await store.create(wanted), options));
    },
  );

  const list = keys.command('list').description('show all keys').option('--json', 'print one JSON array');
  list.action((output: Output) =>
    withKeys(async (store) => {
      const apiKeys = await store.list();
      show(apiKeys, output, apiKeys);
    }),
  );

  addIdCommand(keys, 'show', 'show one key, what is left of its limits, and its ban').action((id, output) =>
    withKeys(async (store, desk) => {
      const apiKey = known(id, await store.find(id));
      showStandings(apiKey, await desk.inspect(id, limitsOf(apiKey)), output);
    }),
  );

  addIdCommand(
    keys,
    'rotate',
    'replace a key: the old one ends at once, the new one is shown this once',
  ).action((id, output) =>
    withKeys(async (store) => {
      if (known(id, await store.find(id)).revokedAt !== null) {
        throw new OperatorError(`The key ${id} is revoked for good: create a new one.`);
      }
      showIssued(known(id, await store.rotate(id)), output);
    }),
  );

  addIdCommand(keys, 'revoke', 'end a key').action((id, output) =>
    withKeys(async (store) => {
      const apiKey = known(id, await store.revoke(id, new Date()));
      show([apiKey], output, apiKey);
    }),
  );

  const setPlan = addPlanOptions(addIdCommand(keys, 'set-plan', 'put a key on another plan'));
  setPlan.action(async (id: string, options: PlanOptions & Output) => {
    const choice = readPlan(setPlan, options);
    await withKeys(async (store) => {
      const apiKey = known(id, await store.setPlan(id, choice));
      show([apiKey], options, apiKey);
    });
  });

  addIdCommand(keys, 'unban', 'lift the ban of a key, and forget those before it').action((id, output) =>
    withKeys(async (store, desk) => {
      const apiKey = known(id, await store.find(id));
      showStandings(apiKey, await desk.unban(id, limitsOf(apiKey)), output);
    }),
  );
}

function addIdCommand(keys: Command, name: string, description: string): Command {
  return keys
    .command(name)
    .description(description)
    .argument('<id>', 'the id of the key, as "keys list" shows it', parseId)
    .option('--json', 'print one JSON object');
}

function addPlanOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--plan <plan>', 'the plan that sets its limits').choices(PLANS).makeOptionMandatory(),
    )
    .option('--per-minute <n>', 'requests per minute, for enterprise', parseLimit)
    .option('--per-day <n>', 'requests per day, for enterprise', parseLimit);
}

/** Enterprise needs both limits; the other plans have their own. */
function readPlan(command: Command, options: PlanOptions): PlanChoice {
  const choice = { plan: options.plan, perMinute: options.perMinute ?? null, perDay: options.perDay ?? null };
  const isEnterprise = choice.plan === 'enterprise';
  if (isEnterprise !== (choice.perMinute !== null) || isEnterprise !== (choice.perDay !== null)) {
    command.error('error: --plan enterprise needs --per-minute and --per-day; the other plans take neither');
  }
  return choice;
}

function known<T>(id: string, found: T | undefined): T {
  if (found === undefined)
    throw new OperatorError(`There is no key with the id ${id}: "keys list" shows all.`);
  return found;
}

function parseName(text: string): string {
  const name = text.trim();
  if (name === '' || [...name].length > 200 || /\p{Cc}/u.test(name))
    throw new InvalidArgumentError('A name has 1 to 200 characters.');
  return name;
}

function parseLimit(text: string): number {
  const limit = Number(text);
  if (/^\d+$/.test(text) && limit >= 1 && limit <= LIMIT_MAX) return limit;
  throw new InvalidArgumentError(`A limit is a whole number from 1 to ${LIMIT_MAX}.`);
}

function parseDuration(text: string): number {
  const [, count = '', unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? [];
  const duration = Number(count) * (DURATION_MS[unit] ?? 0);
  if (duration > 0 && duration <= HUNDRED_YEARS_MS) return duration;
  throw new InvalidArgumentError(
    'A duration is a number and s, m, h or d, such as 30d, up to a hundred years.',
  );
}

function parseId(text: string): string {
  if (UUID.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError(
    'An id looks like 0b54e7c0-3f6e-4d3a-9a53-6d8f4ce1a111; "keys list" shows them.',
  );
}

import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Plan, PlanChoice } from '../keys/store.js';

const PLANS: readonly Plan[] = ['free', 'pro', 'business', 'enterprise'];
const DURATION_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const HUNDRED_YEARS_MS = 36_525 * 86_400_000;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
const LIMIT_MAX = 2 ** 31 - 1;

export interface PlanOptions {
  readonly plan: Plan;
  readonly perMinute?: number;
  readonly perDay?: number;
}

export interface Output {
  readonly json?: true;
}

/** A command on one key, which its argument names. */
export function addIdCommand(keys: Command, name: string, description: string): Command {
  return keys
    .command(name)
    .description(description)
    .argument('<id>', 'the id of the key, as "keys list" shows it', parseId)
    .option('--json', 'print one JSON object');
}

/** The options that name a plan, to be read with readPlan. */
export function addPlanOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--plan <plan>', 'the plan that sets its limits').choices(PLANS).makeOptionMandatory(),
    )
    .option('--per-minute <n>', 'requests per minute, for enterprise', parseLimit)
    .option('--per-day <n>', 'requests per day, for enterprise', parseLimit);
}

/** Enterprise needs both limits; the other plans have their own. */
export function readPlan(command: Command, options: PlanOptions): PlanChoice {
  const choice = { plan: options.plan, perMinute: options.perMinute ?? null, perDay: options.perDay ?? null };
  const isEnterprise = choice.plan === 'enterprise';
  if (isEnterprise !== (choice.perMinute !== null) || isEnterprise !== (choice.perDay !== null)) {
    command.error('error: --plan enterprise needs --per-minute and --per-day; the other plans take neither');
  }
  return choice;
}

/** Throws InvalidArgumentError, like all parsers here, saying what would be right. */
export function parseName(text: string): string {
  const name = text.trim();
  if (name === '' || [...name].length > 200 || /\p{Cc}/u.test(name))
    throw new InvalidArgumentError('A name has 1 to 200 characters, none of them a control character.');
  return name;
}

/** Milliseconds, of a number and a unit. */
export function parseDuration(text: string): number {
  const [, count = '', unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? [];
  const duration = Number(count) * (DURATION_MS[unit] ?? 0);
  if (duration > 0 && duration <= HUNDRED_YEARS_MS) return duration;
  throw new InvalidArgumentError(
    'A duration is a number and s, m, h or d, such as 30d, up to a hundred years.',
  );
}

function parseLimit(text: string): number {
  const limit = Number(text);
  if (/^\d+$/.test(text) && limit >= 1 && limit <= LIMIT_MAX) return limit;
  throw new InvalidArgumentError(`A limit is a whole number from 1 to ${LIMIT_MAX}.`);
}

function parseId(text: string): string {
  if (UUID.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError(
    'An id looks like 0b54e7c0-3f6e-4d3a-9a53-6d8f4ce1a111; "keys list" shows them.',
  );
}

import { type Command, InvalidArgumentError, Option } from 'commander';
import { PLAN_NAMES, PLANS } from '#store/plans.js';
import { SCOPES, type Scope } from '#store/scopes.js';
import { LIVE_PREFIX, TEST_PREFIX, toHint } from '../keys/format.js';
import { completeId, type PlanChoice } from '../keys/store.js';

/** The plans whose keys have limits of their own */
const CUSTOM_PLANS = PLAN_NAMES.filter((plan) => PLANS[plan] === undefined);
const DURATION_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MAX_DURATION_MS = 36_525 * 86_400_000;
/** Of every ban, with a day's room for another clock */
const BANS_END = new Date('2099-12-31T00:00:00Z');
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
/** As in git: a shorter prefix is more likely to be a slip. */
const MIN_ID_PREFIX_CHARACTERS = 4;
export const HINT_EXAMPLE = toHint(`${LIVE_PREFIX}R7kQ2mXw9v`);
/** What follows is no part of a key: the list shows it to mean the rest. */
const ELLIPSIS = /(?:…|\.\.\.)$/;

/** The options of a PlanChoice */
export function addPlanOptions(command: Command): Command {
  const plan = new Option('--plan <plan>', 'the plan that sets its limits').choices(PLAN_NAMES);
  const parseLimit = parseNumber('limit', 2 ** 31 - 1);
  return command
    .addOption(plan.makeOptionMandatory())
    .option('--per-minute <n>', `requests per minute: for ${CUSTOM_PLANS}, which requires it`, parseLimit)
    .option('--per-day <n>', `requests per day: for ${CUSTOM_PLANS}, which requires it`, parseLimit)
    .hook('preAction', checkPlan);
}

/** A plan without limits of its own needs both; the others take neither. */
function checkPlan(command: Command): void {
  const { plan, perMinute, perDay } = command.opts<PlanChoice>();
  const isCustom = CUSTOM_PLANS.includes(plan);
  if (isCustom === (perMinute !== undefined) && isCustom === (perDay !== undefined)) return;
  command.error(
    `error: --plan ${CUSTOM_PLANS} needs --per-minute and --per-day; the other plans take neither`,
  );
}

export function createScopesOption(): Option {
  const description = `what it may do: a list of ${SCOPES.join(',')}`;
  return new Option('--scopes <scopes>', description).argParser(parseScopes);
}

/** @param conflicts the options whose output is more than a key */
export function createQuietOption(conflicts: string[]): Option {
  return new Option('-q, --quiet', 'print only the key').conflicts(conflicts);
}

/** Like all parsers here, throws InvalidArgumentError with a message that says what is valid. */
export const parseName = (text: string) => parseText('A name', text);

export const parseOwner = (text: string) => parseText('An owner', text);

/** Half of a surrogate pair is refused, too: the database would store any as the same character. */
function parseText(noun: string, text: string): string {
  const trimmed = text.trim();
  if (trimmed !== '' && [...trimmed].length <= 200 && !/[\p{Cc}\p{Cs}]/u.test(trimmed)) return trimmed;
  throw new InvalidArgumentError(`${noun} has 1 to 200 characters, none of them a control character.`);
}

/** In seconds, from a number and a unit */
export function parseDuration(text: string): number {
  const [, count = '', unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? [];
  const duration = Number(count) * (DURATION_MS[unit] ?? 0);
  if (duration > 0 && duration <= MAX_DURATION_MS) return duration / 1000;
  throw new InvalidArgumentError(
    'A duration is a number and s, m, h or d, such as 30d, up to a hundred years.',
  );
}

/** The end of a duration that begins now. */
export function parseEnd(text: string): Date {
  return new Date(Date.now() + parseDuration(text) * 1000);
}

/** How long a ban lasts, in seconds. The database has none that ends later. */
export function parseBan(text: string): number {
  if (parseEnd(text) < BANS_END) return parseDuration(text);
  throw new InvalidArgumentError('A ban ends before 2100: to end a key for good, revoke it.');
}

/** A day of the calendar, as YYYY-MM-DD. */
export function parseDay(text: string): string {
  const start = new Date(`${text}T00:00:00Z`);
  if (/^\d{4}-\d\d-\d\d$/.test(text) && start.getTime() > 0 && start.toISOString().startsWith(text))
    return text;
  throw new InvalidArgumentError('A day looks like 2026-01-31.');
}

/** The same for one that has begun, in UTC. */
export function parsePastDay(text: string): string {
  if (Date.parse(parseDay(text)) <= Date.now()) return text;
  throw new InvalidArgumentError('That day is in the future.');
}

/** Scopes in the order of SCOPES, each once. */
function parseScopes(text: string): Scope[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.some((name) => !SCOPES.includes(name as Scope)))
    throw new InvalidArgumentError(`Scopes are one or more of ${SCOPES.join(', ')}, separated by commas.`);
  return SCOPES.filter((scope) => names.includes(scope));
}

export function parseNumber(noun: string, max: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= 1 && number <= max) return number;
    throw new InvalidArgumentError(`A ${noun} is a whole number from 1 to ${max}.`);
  };
}

/** Whether it is an id and not only the beginning of one. */
export function isCompleteId(text: string): boolean {
  return UUID.test(text);
}

/** An id or the beginning of one, in lower case. */
export function parseId(text: string): string {
  if (UUID.test(completeId(text, '0')) && text.length >= MIN_ID_PREFIX_CHARACTERS) return text.toLowerCase();
  throw new InvalidArgumentError(
    `An id looks like 0b54e7c0-3f6e-4d3a-9a53-6d8f4ce1a111; at least its first ${MIN_ID_PREFIX_CHARACTERS} characters are needed. "keys list" shows all.`,
  );
}

/** The same, or the first characters of a key, as many as are stored. More of a key is not for an argument. */
export function parseIdOrHint(text: string): string {
  const hint = text.replace(ELLIPSIS, '');
  if (!isHint(hint)) return parseId(text);
  if (hint.length === HINT_EXAMPLE.length) return hint;
  throw new InvalidArgumentError(`Of a key, the first ${HINT_EXAMPLE.length} characters are needed.`);
}

/** Whether it is the beginning of a key. No id starts like one. */
export function isHint(text: string): boolean {
  return text.startsWith(LIVE_PREFIX) || text.startsWith(TEST_PREFIX);
}

import { PLAN_NAMES, PLANS, type Plan } from '@animal-store/definition/plans';
import { SCOPES, type Scope } from '@animal-store/definition/scopes';
import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { LIVE_PREFIX, TEST_PREFIX, toHint } from '../keys/format.js';
import { completeId } from '../keys/store.js';

/** The plans whose keys have limits of their own */
export const CUSTOM_PLANS: readonly Plan[] = PLAN_NAMES.filter((plan) => PLANS[plan] === undefined);
const PLANS_WITH_LIMITS = PLAN_NAMES.filter((plan) => PLANS[plan] !== undefined);
/** A plan with limits for the examples in help: the nth, or the last if there are fewer */
export const planExample = (n: number): Plan | undefined => PLANS_WITH_LIMITS[n] ?? PLANS_WITH_LIMITS.at(-1);
const DURATION_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MAX_DURATION_MS = 36_525 * 86_400_000;
/** The latest end of a ban, a day before the database's bound, in case clocks differ */
const BANS_END = new Date('2099-12-31T00:00:00Z');
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
/** As in git, because a shorter prefix is more likely to be a slip. */
const MIN_ID_PREFIX_CHARACTERS = 4;
export const HINT_EXAMPLE = toHint(`${LIVE_PREFIX}R7kQ2mXw9v`);
/** The mark by which the list replaces the rest of a key. It is not part of the key. */
const ELLIPSIS = /(?:…|\.\.\.)$/;

const invalid =
  (problem: string) =>
  ({ input }: { readonly input?: unknown }) =>
    input === undefined ? 'is required' : problem;

/** A text that becomes the parser's result. @param value its name in help */
const parsed = <T>(parse: (text: string) => T, value?: string) =>
  z
    .string({ error: invalid('must be a string or a number') })
    .transform((text, context) => {
      try {
        return parse(text);
      } catch (error) {
        context.addIssue((error as Error).message);
        return z.NEVER;
      }
    })
    .meta({ value });

/** Not for programs: changes the form of the output, or needs the owner of the tables. */
export const forTerminals = <Type extends z.ZodType>(type: Type): Type => type.meta({ isForTerminals: true });

/** True or left out */
export const flag = (description: string) => z.boolean().optional().describe(description);

/** A text with commas, or for programs a list. */
const splitScopes = (sent: unknown) =>
  Array.isArray(sent) && sent.every((each) => typeof each === 'string') ? sent.join() : sent;

/** The members of a PlanChoice */
const limit = () => parsed(parseNumber('limit', 2 ** 31 - 1), '<n>').optional();
export const planMembers: {
  readonly plan: z.ZodType<Plan>;
  readonly perMinute: ReturnType<typeof limit>;
  readonly perDay: ReturnType<typeof limit>;
} = {
  plan: z
    .enum(PLAN_NAMES, { error: invalid(`is one of ${PLAN_NAMES.join(', ')}`) })
    .meta({ value: '<plan>' })
    .describe('the plan that sets the limits'),
  perMinute: limit().describe(`requests per minute: for ${CUSTOM_PLANS}, which requires it`),
  perDay: limit().describe(`requests per day: for ${CUSTOM_PLANS}, which requires it`),
};

type PlanMembers = z.output<z.ZodObject<typeof planMembers>>;

/** A plan without limits needs both members; other plans take neither. */
export function fitsPlan({ plan, perMinute, perDay }: PlanMembers): boolean {
  const isCustom = CUSTOM_PLANS.includes(plan);
  return isCustom === (perMinute !== undefined) && isCustom === (perDay !== undefined);
}
export const PLAN_ERROR = `{plan} ${CUSTOM_PLANS} needs {perMinute} and {perDay}; the other plans take neither`;

/** Like all parsers here, throws an Error whose message says what is valid. */
export const parseName = (text: string) => parseText('A name', text);

export const parseOwner = (text: string) => parseText('An owner', text);

/** Half of a surrogate pair is refused, too, because the database would store each as the same character. */
function parseText(noun: string, text: string): string {
  const trimmed = text.trim();
  if (trimmed !== '' && [...trimmed].length <= 200 && !/[\p{Cc}\p{Cs}]/u.test(trimmed)) return trimmed;
  throw new Error(`${noun} has 1 to 200 characters, none of them a control character.`);
}

/** In seconds, from a number and a unit */
function parseDuration(text: string): number {
  const [, count = '', unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? [];
  const duration = Number(count) * (DURATION_MS[unit] ?? 0);
  if (duration > 0 && duration <= MAX_DURATION_MS) return duration / 1000;
  throw new Error('A duration is a number and s, m, h or d, such as 30d, up to a hundred years.');
}

/** The end of a duration that begins now. */
function parseEnd(text: string): Date {
  return new Date(Date.now() + parseDuration(text) * 1000);
}

/** How long a ban lasts, in seconds. The database refuses bans that end later. */
function parseBan(text: string): number {
  if (parseEnd(text) < BANS_END) return parseDuration(text);
  throw new Error('A ban ends before 2100: to end a key for good, revoke it.');
}

/** A day of the calendar, as YYYY-MM-DD. */
function parseDay(text: string): string {
  const start = new Date(`${text}T00:00:00Z`);
  if (/^\d{4}-\d\d-\d\d$/.test(text) && start.getTime() > 0 && start.toISOString().startsWith(text))
    return text;
  throw new Error('A day looks like 2026-01-31.');
}

/** A day of the calendar that has begun, in UTC. */
function parsePastDay(text: string): string {
  if (Date.parse(parseDay(text)) <= Date.now()) return text;
  throw new Error('That day is in the future.');
}

/** Scopes in the order of SCOPES, each once. */
function parseScopes(text: string): Scope[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.some((name) => !SCOPES.includes(name as Scope)))
    throw new Error(`Scopes are one or more of ${SCOPES.join(', ')}, separated by commas.`);
  return SCOPES.filter((scope) => names.includes(scope));
}

/** The error is commander's, because commands other than those on keys have such options, too. */
export function parseNumber(noun: string, max: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= 1 && number <= max) return number;
    throw new InvalidArgumentError(`A ${noun} is a whole number from 1 to ${max}.`);
  };
}

/** Whether a text is a complete id, and not only the beginning of one. */
export function isCompleteId(text: string): boolean {
  return UUID.test(text);
}

/** An id or the beginning of one, in lower case. */
export function parseId(text: string): string {
  if (UUID.test(completeId(text, '0')) && text.length >= MIN_ID_PREFIX_CHARACTERS) return text.toLowerCase();
  throw new Error(
    `An id looks like 0b54e7c0-3f6e-4d3a-9a53-6d8f4ce1a111; at least its first ${MIN_ID_PREFIX_CHARACTERS} characters are needed. "keys list" shows all.`,
  );
}

/** An id or the beginning of one, or the stored first characters of a key. More of a key does not belong in an argument. */
function parseIdOrHint(text: string): string {
  const hint = text.replace(ELLIPSIS, '');
  if (!isHint(hint)) return parseId(text);
  if (hint.length === HINT_EXAMPLE.length) return hint;
  throw new Error(`The first ${HINT_EXAMPLE.length} characters of a key are needed.`);
}

/** Whether a text is the beginning of a key. No id starts like a key. */
export function isHint(text: string): boolean {
  return text.startsWith(LIVE_PREFIX) || text.startsWith(TEST_PREFIX);
}

export const id = parsed(parseId);
export const idOrHint = parsed(parseIdOrHint);
export const name = parsed(parseName, '<name>');
export const owner = parsed(parseOwner, '<owner>').optional();
export const duration = parsed(parseDuration, '<duration>');
export const end = parsed(parseEnd, '<duration>');
export const ban = parsed(parseBan, '<duration>');
export const day = parsed(parseDay, '<day>');
export const pastDay = parsed(parsePastDay, '<day>');
export const scopes: z.ZodType<Scope[]> = z
  .preprocess(splitScopes, parsed(parseScopes))
  .meta({ value: '<scopes>' })
  .describe(`what the key may do: a list of ${SCOPES.join(',')}`);

import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { completeId } from '../keys/store.js';

const DURATION_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MAX_DURATION_MS = 36_525 * 86_400_000;
/** The latest end of a ban, a day before the database's bound, in case clocks differ */
const BANS_END = new Date('2099-12-31T00:00:00Z');
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
/** As in git, because a shorter prefix is more likely to be a slip. */
const MIN_ID_PREFIX_CHARACTERS = 4;

export const invalid =
  (problem: string) =>
  ({ input }: { readonly input?: unknown }) =>
    input === undefined ? 'is required' : problem;

/** A text that becomes the parser's result. @param value its name in help */
export const parsed = <T>(parse: (text: string) => T, value?: string) =>
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

export const id = parsed(parseId);
export const name = parsed(parseName, '<name>');
export const owner = parsed(parseOwner, '<owner>').optional();
export const duration = parsed(parseDuration, '<duration>');
export const end = parsed(parseEnd, '<duration>');
export const ban = parsed(parseBan, '<duration>');
export const day = parsed(parseDay, '<day>');
export const pastDay = parsed(parsePastDay, '<day>');

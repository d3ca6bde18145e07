import { z } from 'zod';
import type { Definition } from '../definition/definition.js';
import { livePrefix, testPrefix, toHint } from '../keys/format.js';
import { invalid, parsed, parseId, parseNumber } from './arguments.js';

/** The mark by which the list replaces the rest of a key. It is not part of the key. */
const ELLIPSIS = /(?:…|\.\.\.)$/;

/** The plans whose keys have limits of their own */
export const customPlans = ({ plans }: Definition): string[] =>
  Object.keys(plans).filter((plan) => plans[plan] === undefined);

/** A plan with limits for the examples in help: the nth, or the last if there are fewer */
export function planExample({ plans }: Definition, n: number): string | undefined {
  const limited = Object.keys(plans).filter((plan) => plans[plan] !== undefined);
  return limited[n] ?? limited.at(-1);
}

/** The first characters of a key in examples */
export const hintExample = ({ identity }: Definition): string =>
  toHint(`${livePrefix(identity.keyPrefix)}R7kQ2mXw9v`);

export function plan({ plans }: Definition) {
  const names = Object.keys(plans);
  return z
    .enum(names, { error: invalid(`is one of ${names.join(', ')}`) })
    .meta({ value: '<plan>' })
    .describe('the plan that sets the limits');
}

/** The members of a PlanChoice */
export function planMembers(definition: Definition) {
  const limit = parsed(parseNumber('limit', 2 ** 31 - 1), '<n>').optional();
  const whose = `for ${customPlans(definition)}, which requires it`;
  return {
    plan: plan(definition),
    perMinute: limit.describe(`requests per minute: ${whose}`),
    perDay: limit.describe(`requests per day: ${whose}`),
  };
}

type PlanMembers = z.output<z.ZodObject<ReturnType<typeof planMembers>>>;

/** A plan without limits needs both members; other plans take neither. */
export function fitsPlan(definition: Definition) {
  const custom = customPlans(definition);
  return ({ plan, perMinute, perDay }: PlanMembers): boolean => {
    const isCustom = custom.includes(plan);
    return isCustom === (perMinute !== undefined) && isCustom === (perDay !== undefined);
  };
}

export const planError = (definition: Definition) =>
  `{plan} ${customPlans(definition)} needs {perMinute} and {perDay}; the other plans take neither`;

/**
 * A text with commas, or for programs a list. The result has each scope once, in the order of the store.
 *
 * @param more ends what the help says
 */
export function scopes({ scopes: all }: Definition, more = ''): z.ZodType<string[]> {
  const splitScopes = (sent: unknown) =>
    Array.isArray(sent) && sent.every((each) => typeof each === 'string') ? sent.join() : sent;
  const parseScopes = (text: string) => {
    const names = text.split(',').map((name) => name.trim());
    if (names.some((name) => !all.includes(name)))
      throw new Error(`Scopes are one or more of ${all.join(', ')}, separated by commas.`);
    return all.filter((scope) => names.includes(scope));
  };
  return z
    .preprocess(splitScopes, parsed(parseScopes))
    .meta({ value: '<scopes>' })
    .describe(`what the key may do: a list of ${all.join(',')}${more}`);
}

/** Whether a text is the beginning of a key. No id starts like a key. */
export function isKeyHint({ identity: { keyPrefix } }: Definition, text: string): boolean {
  return text.startsWith(livePrefix(keyPrefix)) || text.startsWith(testPrefix(keyPrefix));
}

/** An id or the beginning of one, or the stored first characters of a key. More of a key does not belong in an argument. */
export function idOrHint(definition: Definition) {
  const { length } = hintExample(definition);
  return parsed((text) => {
    const hint = text.replace(ELLIPSIS, '');
    if (!isKeyHint(definition, hint)) return parseId(text);
    if (hint.length === length) return hint;
    throw new Error(`The first ${length} characters of a key are needed.`);
  });
}

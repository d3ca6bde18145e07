import { z } from 'zod';
import type { Definition } from '../definition/definition.js';
import { platformErrors } from '../errors/error-table.js';
import { OperatorError } from '../operator-errors/operator-error.js';

/** PostgreSQL stores limits as 32-bit integers. */
const MAX_LIMIT = 2 ** 31 - 1;
const MINUTE_MS = 60_000;

/** @param must what is said of a value that the function does not accept */
const rule = (accepts: (value: unknown) => boolean, must: string) =>
  z.custom<unknown>(accepts, { error: must });

const matching = (pattern: RegExp, must: string) =>
  rule((value) => typeof value === 'string' && pattern.test(value), must);

const wholeNumber = (min: number, max: number) =>
  rule(
    (value) => Number.isInteger(value) && Number(value) >= min && Number(value) <= max,
    `must be a whole number from ${min} to ${max}`,
  );

const limit = wholeNumber(1, MAX_LIMIT);
const text = matching(/\S/, 'must be a text');
const object = { error: 'must be an object' };
const list = { error: 'must be a list' };

/** What each member has to be, whatever the others are. */
const schema = z.object(
  {
    root: rule(
      (value) => value instanceof URL && value.protocol === 'file:' && value.pathname.endsWith('/'),
      'must be the file: URL of a folder, with a slash at its end',
    ),
    identity: z.object(
      {
        name: matching(/^[a-z][a-z\d]*(?:-[a-z\d]+)*$/, 'must be lower case with hyphens'),
        title: text,
        description: text,
        interfaceVersion: matching(/^\d+\.\d+\.\d+$/, 'must be a version such as 1.0.0'),
        license: z.object({ name: text, url: z.url('must be a URL') }, object).optional(),
        keyPrefix: matching(
          // The stored first characters of a key have to tell it from others.
          /^[a-z][a-z\d_]{0,4}_$/,
          'must be lower case with an underscore at its end, and at most six characters',
        ),
        metricsPrefix: matching(/^[a-z][a-z\d_]*_$/, 'must be lower case with an underscore at its end'),
        embedded: z.object(
          {
            database: matching(/^[a-z_][a-z\d_]{0,62}$/, 'must be a lower-case name without hyphens'),
            systemDir: matching(/^\//, 'must be an absolute path'),
          },
          object,
        ),
        mainTable: text,
        grants: z.record(
          z.string(),
          z.array(
            z.enum(['SELECT', 'INSERT', 'UPDATE', 'DELETE'], 'must be SELECT, INSERT, UPDATE or DELETE'),
            list,
          ),
          object,
        ),
        mainPath: matching(/^\//, 'must begin with a slash'),
        mainOperation: text,
      },
      object,
    ),
    windows: z
      .array(z.object({ name: text, lengthMs: wholeNumber(1, MAX_LIMIT), field: text }, object), list)
      .min(1, 'must have the minute'),
    plans: z.record(
      z.string(),
      z.object({ perMinute: limit }, object).catchall(limit.optional()).optional(),
      object,
    ),
    fallbackPlan: text,
    developmentPlan: text,
    scopes: z
      .array(
        matching(
          // RFC 6749, appendix A.4, without the comma that separates scopes on the command line
          /^(?!any$)[!#-+\--[\]-~]+$/,
          'must be visible ASCII without commas, quotes and backslashes, and not the word any',
        ),
        list,
      )
      .min(1, 'must have at least one scope'),
    defaultScopes: z.array(text, list).min(1, 'must have at least one scope').optional(),
    errors: z.record(
      z.string(),
      z.object({ status: wholeNumber(400, 599), message: text, description: text }, object),
      object,
    ),
    loadPrisma: rule((value) => typeof value === 'function', 'must be a function'),
  },
  object,
);

/** The path of a member, and what it must be */
type Problem = readonly [path: string, must: string];

/**
 * Checks what a store is called, sells and allows. Where a store is compiled, types have found a part of it.
 *
 * @throws OperatorError naming each member that is wrong
 */
export function checkDefinition(definition: Definition): void {
  const mistakes = describeMistakes(definition);
  if (mistakes !== undefined) throw new OperatorError(`The definition of the store is wrong: ${mistakes}.`);
}

/** What is wrong with each member; undefined if nothing is. */
export function describeMistakes(definition: Definition): string | undefined {
  const { error } = schema.safeParse(definition);
  const problems = error
    ? error.issues.map(({ path, message }): Problem => [path.map(String).join('.'), message])
    : findConflicts(definition);
  if (problems.length === 0) return undefined;
  return problems
    .map(([path, must]) => `${path} ${must}${describeValue(definition, path)}`.trim())
    .join('; ');
}

/** How members have to agree, once each by itself is right. */
function findConflicts({
  windows,
  plans,
  fallbackPlan,
  developmentPlan,
  scopes,
  defaultScopes = scopes,
  errors,
}: Definition): Problem[] {
  const fields = windows.map(({ field }) => field);
  const hasLimits = (plan: string) => Object.hasOwn(plans, plan) && plans[plan] !== undefined;
  const problems: Problem[] = [];
  const expect = (isRight: boolean, path: string, must: string) => {
    if (!isRight) problems.push([path, must]);
  };
  expect(
    windows[0].field === 'perMinute' && windows[0].lengthMs === MINUTE_MS,
    'windows.0',
    `must have the field perMinute and the length of a minute, ${MINUTE_MS}`,
  );
  expect(
    isUnique(fields) && isUnique(windows.map(({ name }) => name)),
    'windows',
    'must differ in name and field',
  );
  if (problems.length > 0) return problems;
  expect(isUnique(scopes), 'scopes', 'must differ');
  expect(
    isUnique(defaultScopes) && defaultScopes.every((scope) => scopes.includes(scope)),
    'defaultScopes',
    `must differ, and be some of ${scopes.join(', ')}`,
  );
  expect(hasLimits(fallbackPlan), 'fallbackPlan', 'must be a plan with limits');
  expect(hasLimits(developmentPlan), 'developmentPlan', 'must be a plan with limits');
  for (const [name, limits] of Object.entries(plans)) {
    expect(
      /^[a-z]\w*$/i.test(name),
      'plans',
      `must have names of letters, digits and underscores, unlike ${name}`,
    );
    for (const field of Object.keys(limits ?? {}))
      expect(fields.includes(field), `plans.${name}.${field}`, `must be one of ${fields.join(', ')}`);
  }
  for (const code of Object.keys(errors)) {
    expect(
      !Object.hasOwn(platformErrors, code),
      'errors',
      `must have codes of their own: ${code} is the platform's`,
    );
    expect(
      /^[a-z]+(?:_[a-z]+)*$/.test(code),
      'errors',
      `must have codes of lower-case words and underscores, unlike ${code}`,
    );
  }
  return problems;
}

const isUnique = (values: readonly string[]) => new Set(values).size === values.length;

/** What a member is instead, if that is short. */
function describeValue(definition: unknown, path: string): string {
  const members = path === '' ? [] : path.split('.');
  const value = members.reduce<unknown>((at, name) => Object(at)[name], definition);
  if (value === undefined) return ', and is missing';
  return typeof value === 'object' ? '' : `, and is ${JSON.stringify(value) ?? typeof value}`;
}

import { formatLimits, limitsOf } from '../contract/plans.js';
import type { Definition } from '../definition/definition.js';
import { type ApiKey, type KeyState, type ListedKey, stateOf } from '../keys/api-key.js';
import { formatTable, OWNER_CHARACTERS, shorten, shortenId } from './usage-tables.js';

/** What a command prints: with --json, for people, and with --quiet */
export interface Printed {
  readonly json: unknown;
  readonly text: string;
  readonly key?: string;
}

/** A report that may be long, in the form that the options ask for. Its parts are read while it is printed. */
export interface Streamed {
  readonly parts: AsyncIterable<string>;
}

type Field = readonly [label: string, value: string];

/** A key with its text, which is not stored */
interface Issued {
  readonly apiKey: ApiKey;
  readonly key: string;
}

/** A key with its state at `now`, in Unix milliseconds, and the limits in effect, for --json. */
export function toKeyJson(definition: Definition, apiKey: ApiKey, now: number) {
  return { ...apiKey, state: stateOf(apiKey, now), limits: limitsOf(definition, apiKey) };
}

/** `json` and `fields` follow the key's own. */
export function printKey(
  definition: Definition,
  apiKey: ApiKey,
  json: object = {},
  fields: readonly Field[] = [],
): Printed {
  const now = Date.now();
  return {
    json: { ...toKeyJson(definition, apiKey, now), ...json },
    text: formatKey(definition, apiKey, now, fields),
  };
}

export function printIssued(definition: Definition, { apiKey, key }: Issued, more: object = {}): Printed {
  const { json, text } = printKey(definition, apiKey, { key, ...more });
  return { json, text: `${text}\n\n${key}\n\nKeep it now: it is not shown again.`, key };
}

/** An existing key, which is shown instead of a new one. */
export function printInUse(definition: Definition, apiKey: ApiKey): Printed {
  const { json, text } = printKey(definition, apiKey, { isNew: false });
  return {
    json,
    text: `${text}\n\nThe key was issued before, and is not shown again. If it is lost, rotate it.`,
  };
}

/** Several keys that were replaced together. */
export function printAllIssued(definition: Definition, issued: readonly Issued[]): Printed {
  const now = Date.now();
  const rows = issued.map(({ apiKey, key }) => [shortenId(apiKey.id), shorten(apiKey.name, 24), key]);
  return {
    json: issued.map(({ apiKey, key }) => ({ ...toKeyJson(definition, apiKey, now), key })),
    text: `${formatTable([['ID', 'NAME', 'NEW KEY'], ...rows])}\n\nKeep them now: they are not shown again.`,
  };
}

export function printKeys(definition: Definition, apiKeys: readonly ListedKey[]): Printed {
  const now = Date.now();
  return {
    json: apiKeys.map((apiKey) => toKeyJson(definition, apiKey, now)),
    text: formatKeys(definition, apiKeys, now),
  };
}

/** Keys for people, one line each, 120 characters wide at most. What does not fit is in `keys show`. */
export function formatKeys(definition: Definition, apiKeys: readonly ListedKey[], now: number): string {
  return formatKeyRows(apiKeys.map((apiKey) => toKeyRow(definition, apiKey, now)));
}

/** What is shown of a key, for `formatKeyRows`. */
export function toKeyRow({ identity, scopes }: Definition, apiKey: ListedKey, now: number): string[] {
  // How much fits beside the beginning of a key, whose length depends on the store's prefix.
  const nameCharacters = 23 - identity.keyPrefix.length;
  return [
    shortenId(apiKey.id),
    shorten(apiKey.name, nameCharacters),
    apiKey.owner === null ? '-' : shorten(apiKey.owner, OWNER_CHARACTERS),
    `${apiKey.hint}…`,
    apiKey.plan,
    scopes.every((scope) => apiKey.scopes.includes(scope))
      ? 'all'
      : `${apiKey.scopes.length} of ${scopes.length}`,
    apiKey.lastUsedOn ?? '-',
    formatMinute(apiKey.expiresAt).slice(0, 10),
    stateOf(apiKey, now),
  ];
}

export function formatKeyRows(rows: readonly (readonly string[])[]): string {
  return formatTable([
    ['ID', 'NAME', 'OWNER', 'KEY', 'PLAN', 'SCOPES', 'LAST USED', 'EXPIRES', 'STATE'],
    ...rows,
  ]);
}

/** One key for people, one line for each field; `more` follows its own fields. */
export function formatKey(
  definition: Definition,
  apiKey: ApiKey,
  now: number,
  more: readonly Field[] = [],
): string {
  return formatTable([
    ['ID', apiKey.id],
    ['Name', apiKey.name],
    ['Owner', apiKey.owner ?? '-'],
    ['Key', `${apiKey.hint}…`],
    ['Plan', apiKey.plan],
    ['Limits', formatLimits(definition, limitsOf(definition, apiKey))],
    ['Scopes', apiKey.scopes.join(', ')],
    ['Created', formatMinute(apiKey.createdAt)],
    ['Expires', formatMinute(apiKey.expiresAt)],
    ['State', describeState(apiKey, now)],
    ...more,
  ]);
}

/** The state of a key in words, with a time. */
function describeState(apiKey: ApiKey, now: number): string {
  const { revokedAt, bannedUntil, previousExpiresAt } = apiKey;
  const hasOldKey = previousExpiresAt !== null && previousExpiresAt.getTime() > now;
  const descriptions: Readonly<Record<KeyState, string>> = {
    revoked: `revoked since ${formatMinute(revokedAt)}`,
    expired: 'expired',
    banned: `banned until ${formatMinute(bannedUntil)}`,
    active: hasOldKey ? `active, the old key too until ${formatMinute(previousExpiresAt)}` : 'active',
  };
  return descriptions[stateOf(apiKey, now)];
}

/** In UTC, without seconds */
function formatMinute(date: Date | null): string {
  return date === null ? 'never' : `${date.toISOString().slice(0, 16)}Z`;
}

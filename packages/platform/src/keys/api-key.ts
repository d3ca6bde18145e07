/** A stored key: everything but the key itself. */
export interface ApiKey<Plan extends string = string> {
  readonly id: string;
  readonly name: string;
  /** The customer that the operator selects keys by. Callers never see it. Rows of a store may belong to an owner. */
  readonly owner: string | null;
  /** The first characters of the key; during the overlap of a rotation, those of the key that was sent */
  readonly hint: string;
  readonly plan: Plan;
  /** The key's own limits, set if its plan has none */
  readonly perMinute: number | null;
  readonly perDay: number | null;
  /** One or more. A later version may have added scopes that this version does not know. */
  readonly scopes: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  /** Until when the key that a rotation replaced by this one still works */
  readonly previousExpiresAt: Date | null;
  readonly revokedAt: Date | null;
  /** The end of the last ban */
  readonly bannedUntil: Date | null;
  /** The length of the last ban */
  readonly banSeconds: number | null;
}

/** A key as it was found by its hash */
export interface FoundKey extends ApiKey {
  /** A hash of its row at that time, for `findChanged` */
  readonly fingerprint: string;
}

export interface ListedKey extends ApiKey {
  /** The last UTC day, as YYYY-MM-DD, for which usage is stored; null if none is */
  readonly lastUsedOn: string | null;
}

/** The states of keys, of which only `active` is served. */
export const KEY_STATES = ['active', 'banned', 'expired', 'revoked'] as const;
export type KeyState = (typeof KEY_STATES)[number];

/** The state of a key at a moment, in Unix milliseconds. `stateSql` in statements.ts decides the same. */
export function stateOf(apiKey: ApiKey, now: number): KeyState {
  const { bannedUntil } = apiKey;
  return findEnd(apiKey, now) ?? (bannedUntil !== null && bannedUntil.getTime() > now ? 'banned' : 'active');
}

/** Whether a key is neither revoked nor expired at a moment. It may be banned. */
export function isActive(apiKey: ApiKey, now: number): boolean {
  return findEnd(apiKey, now) === undefined;
}

function findEnd({ revokedAt, expiresAt }: ApiKey, now: number): 'revoked' | 'expired' | undefined {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= now ? 'expired' : undefined;
}

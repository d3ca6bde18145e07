import type { Plan } from '../contract/plans.js';
import { SCOPES, type Scope } from '../contract/scopes.js';
import type { Connections } from '../database/connections.js';
import { generateKey, hashKey, type KeyPrefix, toHint } from './format.js';

/** A stored key: everything but the key itself. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  /** The key's first characters */
  readonly hint: string;
  readonly plan: Plan;
  /** Its own limits, for enterprise only */
  readonly perMinute: number | null;
  readonly perDay: number | null;
  /** One or more. A later version may have added some that this one does not know. */
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

export interface ListedKey extends ApiKey {
  /** The last UTC day, as YYYY-MM-DD, for which usage is stored; null if none is */
  readonly lastUsedOn: string | null;
}

/** A plan and, for enterprise only, the key's own limits. */
export interface PlanChoice {
  readonly plan: Plan;
  readonly perMinute?: number | null | undefined;
  readonly perDay?: number | null | undefined;
}

interface NewKey extends PlanChoice {
  readonly name: string;
  readonly expiresAt?: Date | null | undefined;
  readonly scopes?: readonly Scope[] | undefined;
}

/** Every method may fail with a database error: see isDatabaseOutage. */
export type KeyStore = ReturnType<typeof createKeyStore>;

type KeyRow = ApiKey & { readonly hash: Buffer; readonly previousHash: Buffer | null };

/** All but the hashes. */
const COLUMNS = `
  id, name, start AS hint, plan, per_minute AS "perMinute", per_day AS "perDay", scopes, created_at AS "createdAt",
  expires_at AS "expiresAt", previous_expires_at AS "previousExpiresAt", revoked_at AS "revokedAt",
  banned_until AS "bannedUntil", ban_seconds AS "banSeconds"`;

const SELECT_LISTED = `
  SELECT ${COLUMNS}, (SELECT max(day)::text FROM api_key_usage WHERE api_key_id = id) AS "lastUsedOn" FROM api_keys`;

const FIND_BY_HASHES = {
  name: 'keys-find-by-hashes',
  text: `
    SELECT ${COLUMNS}, hash, previous_hash AS "previousHash"
    FROM api_keys WHERE hash = ANY ($1::bytea[]) OR previous_hash = ANY ($1::bytea[])`,
};

const INSERT = `
  INSERT INTO api_keys (name, expires_at, scopes, plan, per_minute, per_day, hash, start)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING ${COLUMNS}`;

const ROTATE = `
  UPDATE api_keys
  SET previous_hash = CASE WHEN $2::timestamptz IS NOT NULL THEN hash END, previous_expires_at = $2, hash = $3, start = $4
  WHERE id = $1 AND revoked_at IS NULL RETURNING ${COLUMNS}`;

const BAN = `
  UPDATE api_keys SET banned_until = $3, ban_seconds = $4
  WHERE id = $1 AND (banned_until IS NULL OR banned_until <= $2)`;

/** @param condition on keys, which an index answers */
const countByPlanSql = (condition: string) =>
  `SELECT plan, count(*)::int FROM api_keys WHERE ${condition} AND revoked_at IS NULL GROUP BY plan`;
export const COUNT_BANNED = countByPlanSql('banned_until > $1');
export const COUNT_EXPIRING = countByPlanSql('expires_at > $1 AND expires_at <= $2');

/** All queries on keys, in SQL: Prisma's client would take longer to load than a command. */
export function createKeyStore({ pool, keys }: Pick<Connections, 'pool' | 'keys'>, prefix: KeyPrefix) {
  const query = async <Key extends ApiKey = ApiKey>(text: string, ...values: unknown[]) =>
    (await pool.query<Key>(text, values)).rows;
  const queryOne = async (text: string, ...values: unknown[]) => (await query(text, ...values)).at(0);
  const update = (id: string, assignments: string, ...values: unknown[]) =>
    queryOne(`UPDATE api_keys SET ${assignments} WHERE id = $1 RETURNING ${COLUMNS}`, id, ...values);
  const countByPlan = async (text: string, ...moments: Date[]): Promise<ReadonlyMap<Plan, number>> => {
    const { rows } = await pool.query<{ plan: Plan; count: number }>(text, moments);
    return new Map(rows.map(({ plan, count }) => [plan, count]));
  };
  return {
    /** The keys with these hashes, in their order. One that a rotation replaced expires with the overlap. */
    async findByHashes(hashes: readonly Uint8Array[]) {
      const rows = await keys.query<KeyRow>(FIND_BY_HASHES, [hashes]);
      const found = new Map<string, ApiKey>();
      for (const { hash, previousHash, ...apiKey } of rows) {
        found.set(hash.toString('hex'), apiKey);
        if (previousHash !== null) found.set(previousHash.toString('hex'), expireWithOverlap(apiKey));
      }
      return hashes.map((hash) => found.get(Buffer.from(hash).toString('hex')));
    },
    /** Issues a key, by default with all scopes. `key` is the only copy that there will ever be. */
    async create(input: NewKey) {
      const { name, expiresAt, scopes = SCOPES, plan, perMinute, perDay } = input;
      const key = generateKey(prefix);
      const columns = [name, expiresAt, scopes, plan, perMinute, perDay, hashKey(key), toHint(key)];
      return { key, apiKey: (await queryOne(INSERT, ...columns)) as ApiKey };
    },
    /** All keys, oldest first. */
    list: () => query<ListedKey>(`${SELECT_LISTED} ORDER BY created_at`),
    find: (id: string) => queryOne(`SELECT ${COLUMNS} FROM api_keys WHERE id = $1`, id),
    /** The keys whose ids start with this, the first characters of a UUID in lower case or all of them, oldest first. */
    findByIdPrefix(prefix: string) {
      // PostgreSQL orders UUIDs as their text, so a prefix is a range of the primary key.
      const range = [completeId(prefix, '0'), completeId(prefix, 'f')];
      return query<ListedKey>(`${SELECT_LISTED} WHERE id BETWEEN $1 AND $2 ORDER BY created_at`, ...range);
    },
    /**
     * Replaces the key with a new one. The old one works until `overlapEndsAt`, or ends at once if that is left out; an
     * old key of an earlier rotation ends in any case. Resolves with undefined when there is no such key, or it is
     * revoked.
     */
    async rotate(id: string, overlapEndsAt?: Date) {
      const key = generateKey(prefix);
      const apiKey = await queryOne(ROTATE, id, overlapEndsAt, hashKey(key), toHint(key));
      return apiKey && { key, apiKey };
    },
    /** Ends a key. One that is already revoked keeps its original time. Resolves with undefined when there is none. */
    revoke: (id: string, at: Date) => update(id, 'revoked_at = coalesce(revoked_at, $2)', at),
    setPlan: (id: string, { plan, perMinute, perDay }: PlanChoice) =>
      update(id, 'plan = $2, per_minute = $3, per_day = $4', plan, perMinute, perDay),
    setScopes: (id: string, scopes: readonly Scope[]) => update(id, 'scopes = $2', scopes),
    /**
     * Bans a key from `startsAt` on, unless a ban is running then: two nodes that ban at the same moment start one ban.
     */
    async ban(id: string, startsAt: Date, seconds: number) {
      const endsAt = new Date(startsAt.getTime() + seconds * 1000);
      await query(BAN, id, startsAt, endsAt, seconds);
    },
    /** How many keys of each plan are banned at a moment, without those that are revoked. Plans without any are left out. */
    countBanned: (at: Date) => countByPlan(COUNT_BANNED, at),
    /** The same for those that expire between two moments. */
    countExpiring: (from: Date, to: Date) => countByPlan(COUNT_EXPIRING, from, to),
    /** Lifts the ban of a key and forgets its length, so that the next one is not doubled. */
    unban: (id: string) => update(id, 'banned_until = NULL, ban_seconds = NULL'),
  };
}

/** Whether a key is neither revoked nor expired at a moment, in Unix milliseconds. */
export function isActive({ revokedAt, expiresAt }: ApiKey, now: number): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt.getTime() > now);
}

function expireWithOverlap(apiKey: ApiKey): ApiKey {
  const { expiresAt, previousExpiresAt } = apiKey;
  if (previousExpiresAt === null || (expiresAt !== null && expiresAt < previousExpiresAt)) return apiKey;
  return { ...apiKey, expiresAt: previousExpiresAt };
}

/** The UUID that starts with these characters and goes on with one digit. */
export function completeId(prefix: string, digit: string): string {
  return prefix + '________-____-____-____-____________'.slice(prefix.length).replaceAll('_', digit);
}

import type { InSchema } from '../connections/schema-name.js';
import type { ApiKey, KeyState } from './api-key.js';

/*
 * The SQL of keys, and what it returns.
 */

/** Unix milliseconds as PostgreSQL shows a bigint, which no setting changes, unlike a date. */
type Moment = string;

/** A key as statements return it. */
export interface KeyRow {
  readonly id: string;
  readonly name: string;
  readonly owner: string | null;
  readonly hint: string;
  readonly plan: string;
  readonly perMinute: number | null;
  readonly perDay: number | null;
  readonly scopes: readonly string[];
  readonly createdAt: Moment;
  readonly expiresAt: Moment | null;
  readonly previousExpiresAt: Moment | null;
  readonly revokedAt: Moment | null;
  readonly bannedUntil: Moment | null;
  readonly banSeconds: number | null;
}

export interface HashedRow extends KeyRow {
  readonly hash: Buffer;
  readonly previousHash: Buffer | null;
  /** A bigint */
  readonly fingerprint: string;
}

export interface ListedRow extends KeyRow {
  readonly lastUsedOn: string | null;
}

/** The conditions that listed keys meet. */
export interface KeyFilter {
  readonly owner?: string | undefined;
  readonly plan?: string | undefined;
  /** At the moment `at` */
  readonly state?: KeyState | undefined;
  readonly at?: Date | undefined;
  /** The key was neither used nor created since */
  readonly unusedSince?: Date | undefined;
  /** The previous key of the list, oldest first */
  readonly after?: { readonly createdAt: Date; readonly id: string } | undefined;
}

/** The key of a row, without the row's other columns. */
export function toApiKey(row: KeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    owner: row.owner,
    hint: row.hint,
    plan: row.plan,
    perMinute: row.perMinute,
    perDay: row.perDay,
    scopes: row.scopes,
    banSeconds: row.banSeconds,
    createdAt: new Date(Number(row.createdAt)),
    expiresAt: toDate(row.expiresAt),
    previousExpiresAt: toDate(row.previousExpiresAt),
    revokedAt: toDate(row.revokedAt),
    bannedUntil: toDate(row.bannedUntil),
  };
}

function toDate(moment: Moment | null): Date | null {
  return moment === null ? null : new Date(Number(moment));
}

const momentSql = (column: string) => `(extract(epoch FROM ${column}) * 1000)::bigint`;

/** All but the hashes. The plan is text, so that no type of a result changes with a restore. */
const COLUMNS = `
  id, name, owner, hint, plan::text AS plan, per_minute AS "perMinute", per_day AS "perDay", scopes,
  ${momentSql('created_at')} AS "createdAt", ${momentSql('expires_at')} AS "expiresAt",
  ${momentSql('previous_expires_at')} AS "previousExpiresAt", ${momentSql('revoked_at')} AS "revokedAt",
  ${momentSql('banned_until')} AS "bannedUntil", ban_seconds AS "banSeconds"`;

/** One of KEY_STATES, as stateOf decides */
const stateSql = (at: string) => `
  CASE
    WHEN revoked_at IS NOT NULL THEN 'revoked'
    WHEN expires_at <= ${at} THEN 'expired'
    WHEN banned_until > ${at} THEN 'banned'
    ELSE 'active'
  END`;

/** The conditions of a KeyFilter. Each holds for all keys if its parameter is null. */
const fitsSql = (lastDay: string) => `
  ($1::text IS NULL OR owner = $1)
  AND ($2::text IS NULL OR plan::text = $2)
  AND ($3::text IS NULL OR ${stateSql('$4::timestamptz')} = $3)
  AND ($5::timestamptz IS NULL OR coalesce(${lastDay}::timestamp AT TIME ZONE 'UTC', created_at) < $5)
  AND ($6::timestamptz IS NULL OR (created_at, id) > ($6, $7::uuid))`;

/**
 * A hash of all columns that are read here. It changes with any value, whether SQL has changed it, another database has
 * replaced this one, or a column has taken the name of another.
 */
const FINGERPRINT = `hash_record_extended(ROW(
  id, name, owner, hint, plan::text, per_minute, per_day, scopes, created_at, expires_at, previous_expires_at,
  revoked_at, banned_until, ban_seconds, hash, previous_hash), 0)`;

export function createKeyStatements(inSchema: InSchema) {
  const keys = inSchema('api_keys');
  /** @param condition on keys, which an index answers */
  const countByPlanSql = (condition: string) =>
    `SELECT plan, count(*)::integer FROM ${keys} WHERE ${condition} AND revoked_at IS NULL GROUP BY plan`;
  /** All keys with the ids in `$1`, or none of them */
  const update = (assignments: string) =>
    `UPDATE ${keys} SET ${assignments} WHERE id = ANY ($1::uuid[]) RETURNING ${COLUMNS}`;
  const lastDay = `(SELECT max(day) FROM ${inSchema('api_key_usage')} AS usage WHERE usage.api_key_id = keys.id)`;
  const selectListed = (condition: string) => `
    SELECT ${COLUMNS}, to_char(${lastDay}, 'YYYY-MM-DD') AS "lastUsedOn"
    FROM ${keys} AS keys WHERE ${condition} ORDER BY created_at, id`;
  return {
    selectListed,
    /** Without a limit if `$8` is null */
    list: `${selectListed(fitsSql(lastDay))} LIMIT $8`,
    find: `SELECT ${COLUMNS} FROM ${keys} WHERE id = $1`,
    findByHashes: {
      name: 'keys-find-by-hashes',
      text: `
        SELECT ${COLUMNS}, hash, previous_hash AS "previousHash", ${FINGERPRINT} AS fingerprint
        FROM ${keys} WHERE hash = ANY ($1::bytea[]) OR previous_hash = ANY ($1::bytea[])`,
      emptyValues: ['{}'],
    },
    /** Phrased so that PostgreSQL uses the index whatever it expects of the arrays: a join might read all keys. */
    findChanged: {
      name: 'keys-find-changed',
      text: `
        SELECT known.id FROM unnest($1::uuid[], $2::bigint[]) AS known (id, fingerprint)
        WHERE known.fingerprint IS DISTINCT FROM (SELECT ${FINGERPRINT} FROM ${keys} AS keys WHERE keys.id = known.id)`,
      emptyValues: ['{}', '{}'],
    },
    insert: `
      INSERT INTO ${keys} (name, owner, expires_at, scopes, plan, per_minute, per_day, hash, hint, id)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, coalesce($10::uuid, gen_random_uuid())) RETURNING ${COLUMNS}`,
    update,
    revoke: update('revoked_at = coalesce(revoked_at, $2)'),
    // The statement sees locked rows as they are now, so that of two simultaneous rotations the second sees the first.
    rotate: `
      WITH locked AS MATERIALIZED (
        SELECT previous_expires_at > now() AS is_overlapping FROM ${keys} WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE
      )
      UPDATE ${keys}
      SET previous_hash = CASE WHEN $2::timestamptz IS NOT NULL THEN hash END, previous_expires_at = $2,
        hash = new_hash, hint = new_hint
      FROM ROWS FROM (
        unnest($1::uuid[]),
        unnest($3::bytea[]),
        unnest($4::text[])
      ) AS issued (key_id, new_hash, new_hint)
      WHERE id = key_id AND revoked_at IS NULL
        AND ($2::timestamptz IS NULL OR $5::boolean OR NOT EXISTS (SELECT FROM locked WHERE is_overlapping))
      RETURNING ${COLUMNS}`,
    ban: `
      WITH ban AS (SELECT statement_timestamp() - make_interval(secs => $3::float8) AS starts_at)
      UPDATE ${keys} SET banned_until = starts_at + make_interval(secs => $2::integer), ban_seconds = $2
      FROM ban WHERE id = $1 AND (banned_until IS NULL OR banned_until <= starts_at)`,
    countBanned: countByPlanSql('banned_until > $1'),
    countExpiring: countByPlanSql('expires_at > $1 AND expires_at <= $2'),
  };
}

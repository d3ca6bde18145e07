import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../connections/client.js';
import type { InSchema } from '../connections/schema-name.js';
import { IDEMPOTENCY_TTL_HOURS } from '../contract/bounds.js';
import { ApiError } from '../errors/api-error.js';
import { deleteOld, deleteOldSql } from './old-rows.js';

const TABLE = 'idempotent_creates';
/** By the clock of the database */
const IS_EXPIRED = `created_at <= now() - interval '${IDEMPOTENCY_TTL_HOURS} hours'`;

export const deleteExpiredSql = (inSchema: InSchema) =>
  deleteOldSql(inSchema(TABLE), 'created_at', IS_EXPIRED);

/** Identifies one create. The same key for another operation, or from another API key, identifies another create. */
export interface IdempotencyKey {
  readonly apiKeyId: string;
  /** The Idempotency-Key of the request, which several calls of a tRPC batch share */
  readonly value: string;
  readonly operation: string;
  /** The position in a tRPC batch; 0 otherwise */
  readonly batchIndex: number;
  /** SHA-256 of what a repetition has to repeat */
  readonly bodyHash: Uint8Array;
}

/** What a create resolves with. */
export interface CreateResult<Output> {
  readonly output: Output;
  /** Whether `output` is that of an earlier create with the same key, so that nothing was created */
  readonly isReplay: boolean;
}

/**
 * `running`: another create holds this key's lock, or is in the same statement. `exists`: another create has succeeded.
 * `refusal`: why nothing was created.
 */
export type CreateAttempt<Output> =
  | { readonly output: Output }
  | { readonly refusal: Error }
  | 'running'
  | 'exists';

/** The columns of the primary key, in its order: their types, and what they hold */
const ID_COLUMNS = [
  ['api_key_id', 'uuid', 'apiKeyId'],
  ['key', 'text', 'value'],
  ['operation', 'text', 'operation'],
  ['batch_index', 'smallint', 'batchIndex'],
] as const satisfies readonly (readonly [string, string, keyof IdempotencyKey])[];
const COLUMNS = [...ID_COLUMNS, ['body_hash', 'bytea', 'bodyHash']] as const;

/** The columns that a key is stored in, with their types, in the order of toKeyValues */
export const KEY_COLUMNS: readonly (readonly [name: string, type: string, member: keyof IdempotencyKey])[] =
  COLUMNS;
export const toKeyValues = (key: IdempotencyKey) => COLUMNS.map(([, , member]) => key[member]);
/** The values that identify a key, without the hash */
export const toIdValues = (key: IdempotencyKey) => ID_COLUMNS.map(([, , member]) => key[member]);

/** The parts of a statement about a key. `toValue` returns the SQL for the value of a column of idempotent_creates. */
export function keySql(inSchema: InSchema, toValue: (column: string, type: string, index: number) => string) {
  const id = ID_COLUMNS.map(([column, type], index) => toValue(column, type, index)).join(', ');
  const isId = `(${ID_COLUMNS.map(([column]) => column).join(', ')}) = (${id})`;
  return {
    id,
    isId,
    /** The number of the advisory lock that a create holds while it runs */
    lock: `hashtextextended(concat_ws(' ', ${id}), 0)`,
    /** Not `EXISTS (…)`, whose plan may read a whole day's keys. */
    isStored: `(SELECT true FROM ${inSchema(TABLE)} WHERE ${isId}) IS TRUE`,
  };
}

/** The caller adds a SELECT or VALUES with KEY_COLUMNS and the response */
export const insertKeySql = (inSchema: InSchema) =>
  `INSERT INTO ${inSchema(TABLE)} (${COLUMNS.map(([column]) => column).join(', ')}, response)`;

/** For a key whose values are the first parameters, in the order of toKeyValues */
export const toKeyParameter = (_column: string, type: string, index: number) => `$${index + 1}::${type}`;

const findStoredSql = (inSchema: InSchema) => {
  const { isId } = keySql(inSchema, toKeyParameter);
  return `
    WITH expired AS (DELETE FROM ${inSchema(TABLE)} WHERE ${isId} AND ${IS_EXPIRED})
    SELECT body_hash, response FROM ${inSchema(TABLE)} WHERE ${isId} AND NOT ${IS_EXPIRED}`;
};

/** The pause before each attempt while the first create with a key is running. No connection is held during a pause. */
const WAITS_MS = [0, 20, 50, 100, 200, 400];

/** Deletes the creates that have expired. */
export async function deleteExpiredCreates({
  writes,
  inSchema,
}: Pick<Database, 'writes' | 'inSchema'>): Promise<void> {
  await deleteOld(writes, deleteExpiredSql(inSchema));
}

/**
 * Attempts a create until it has succeeded, by this call or by another call with the same key.
 *
 * @param key without a key, the attempt can only succeed or be refused
 * @throws ApiError idempotency_key_reused; idempotency_key_in_use when another create runs for too long; and the refusal
 */
export async function createOrReplay<Output>(
  database: Pick<Database, 'writes' | 'inSchema'>,
  key: IdempotencyKey | undefined,
  attempt: () => Promise<CreateAttempt<Output>>,
): Promise<CreateResult<Output>> {
  for (const wait of WAITS_MS) {
    if (wait > 0) await delay(wait);
    const attempted = await attempt();
    if (attempted === 'running') continue;
    if (attempted !== 'exists' && 'output' in attempted) return { output: attempted.output, isReplay: false };
    // Also after a refusal, because another create with the key may have caused it.
    const stored = key && (await findStoredCreate<Output>(database, key));
    if (stored !== undefined) return { output: stored.output, isReplay: true };
    if (attempted !== 'exists') throw attempted.refusal;
  }
  throw new ApiError('idempotency_key_in_use');
}

/**
 * The output of the first create with a key. Undefined when the create has expired, and is deleted here, or was deleted
 * in the meantime.
 *
 * @throws ApiError idempotency_key_reused
 */
async function findStoredCreate<Output>(
  { writes, inSchema }: Pick<Database, 'writes' | 'inSchema'>,
  key: IdempotencyKey,
): Promise<{ output: Output } | undefined> {
  const { rows } = await writes.pool.query<{ body_hash: Buffer; response: Output }>(
    findStoredSql(inSchema),
    toIdValues(key),
  );
  const [stored] = rows;
  if (stored === undefined) return undefined;
  if (!stored.body_hash.equals(key.bodyHash)) throw new ApiError('idempotency_key_reused');
  return { output: stored.response };
}

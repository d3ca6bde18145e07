import { ApiError } from '../errors/api-error.js';
import type { Database } from './client.js';
import { deleteOld, deleteOldSql } from './old-rows.js';
import type { InSchema } from './schema-name.js';

const TABLE = 'idempotent_creates';
/** How long a create is remembered under its Idempotency-Key, by the clock of the database. */
export const IDEMPOTENCY_TTL_HOURS = 24;
const IS_EXPIRED = `created_at <= pg_catalog.now() - interval '${IDEMPOTENCY_TTL_HOURS} hours'`;

export const deleteExpiredSql = (inSchema: InSchema) =>
  deleteOldSql(inSchema(TABLE), 'created_at', IS_EXPIRED);

const IS_KEY = '(api_key_id, key, operation, call) = ($1, $2, $3, $4)';
const findStoredSql = (inSchema: InSchema) => `
  WITH expired AS (DELETE FROM ${inSchema(TABLE)} WHERE ${IS_KEY} AND ${IS_EXPIRED})
  SELECT body_hash, response FROM ${inSchema(TABLE)} WHERE ${IS_KEY} AND NOT ${IS_EXPIRED}`;

/** The Idempotency-Key of a request, which several calls of a tRPC batch share. */
export interface IdempotencyHeader {
  readonly value: string;
  /** SHA-256 of the request's body. */
  readonly bodyHash: Uint8Array;
  /** Each create reports whether it was a replay, and each failed call that it was none. The response says so if all were. */
  setReplayed(isReplay: boolean): void;
}

/** Identifies one create. The same key sent to another operation, or by another API key, is a different one. */
export interface IdempotencyKey {
  readonly apiKeyId: string;
  readonly operation: string;
  readonly header: IdempotencyHeader;
  /** The position in a tRPC batch; 0 otherwise. */
  readonly batchIndex: number;
}

/** Deletes the creates that have expired. */
export async function deleteExpiredCreates({
  pool,
  inSchema,
}: Pick<Database, 'pool' | 'inSchema'>): Promise<void> {
  await deleteOld({ pool }, deleteExpiredSql(inSchema));
}

/**
 * The output of the first create with a key. Undefined when it has expired (it is then deleted here) or was deleted in
 * the meantime.
 *
 * @throws ApiError idempotency_key_reused
 */
export async function findStoredCreate<Output>(
  { pool, inSchema }: Pick<Database, 'pool' | 'inSchema'>,
  { apiKeyId, operation, batchIndex, header }: IdempotencyKey,
): Promise<{ output: Output } | undefined> {
  const key = [apiKeyId, header.value, operation, batchIndex];
  const { rows } = await pool.query<{ body_hash: Buffer; response: Output }>(findStoredSql(inSchema), key);
  const [stored] = rows;
  if (stored === undefined) return undefined;
  if (!stored.body_hash.equals(header.bodyHash)) throw new ApiError('idempotency_key_reused');
  return { output: stored.response };
}

import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from './database/client.js';
import { Prisma } from './database/generated/client.js';
import { readSqlState } from './database/outage.js';
import { ApiError } from './errors.js';

/** How long a create is remembered under its Idempotency-Key. */
export const IDEMPOTENCY_TTL_MS = 24 * 60 * 60 * 1000;

/** How many expired creates one statement deletes: few enough to stay well within STATEMENT_TIMEOUT_MS. */
const DELETE_BATCH_SIZE = 5_000;

/** 1 to 255 visible ASCII characters. */
const KEY_PATTERN = /^[!-~]{1,255}$/;
/** The pause before each attempt while the first create with a key is running. No connection is held during a pause. */
const WAITS_MS = [0, 20, 50, 100, 200, 400];
/** SQLSTATE, PostgreSQL's appendix A. */
const UNIQUE_VIOLATION = '23505';

type PrismaClient = Database['prisma'];

/** The Idempotency-Key of a request, which several calls of a tRPC batch share. */
export interface IdempotencyHeader {
  readonly value: string;
  /** SHA-256 of the request's body. */
  readonly bodyHash: Uint8Array;
  /** Each create reports whether it was a replay. The response says so if all of them were. */
  setReplayed(isReplay: boolean): void;
}

/** Identifies one create. The same key sent to another operation, or by another API key, is a different one. */
export interface IdempotencyKey {
  readonly apiKeyId: string;
  readonly operation: string;
  readonly header: IdempotencyHeader;
  /** The position in a tRPC batch; 0 otherwise. */
  readonly batchIndex: number;
  /** Unix milliseconds. */
  readonly receivedAt: number;
}

/** An INSERT of one row. The statement is assembled here, so that no store can forget the lock. */
export interface Insert {
  /** The table and its columns: `pets (name, category_id)`. */
  readonly into: string;
  /** One expression per column. */
  readonly values: Prisma.Sql;
  /** The output of the operation, as a JSON expression over the columns of the new row. */
  readonly returning: string;
}

/** @throws ApiError invalid_request when the header is malformed */
export function createIdempotencyKey(
  header: IdempotencyHeader,
  call: Omit<IdempotencyKey, 'header'>,
): IdempotencyKey {
  if (!KEY_PATTERN.test(header.value)) {
    throw new ApiError('invalid_request', {
      message: 'Idempotency-Key must have 1 to 255 visible ASCII characters.',
    });
  }
  const { apiKeyId, operation, batchIndex, receivedAt } = call;
  return { apiKeyId, operation, batchIndex, receivedAt, header };
}

/**
 * Inserts a row and returns its JSON. With an idempotency key, a repetition returns what the first create returned.
 *
 * One statement inserts the row and its key, so that both are stored or neither. When several nodes try at once, the
 * primary key of idempotent_creates lets only one succeed.
 *
 * @throws ApiError idempotency_key_reused, idempotency_key_in_use
 */
export async function createOnce<Output>(
  prisma: PrismaClient,
  insert: Insert,
  idempotencyKey: IdempotencyKey | undefined,
): Promise<Output> {
  if (idempotencyKey === undefined) return insertRow(prisma, insert);
  for (const wait of WAITS_MS) {
    if (wait > 0) await delay(wait);
    const attempt = await tryInsert<Output>(prisma, insert, idempotencyKey);
    if (attempt === 'running') continue;
    if (attempt !== 'exists') {
      idempotencyKey.header.setReplayed(false);
      return attempt.output;
    }
    const stored = await findStored<Output>(prisma, idempotencyKey);
    if (stored === undefined) continue;
    idempotencyKey.header.setReplayed(true);
    return stored.output;
  }
  throw new ApiError('idempotency_key_in_use');
}

/** Deletes the creates that have expired at `now`, in Unix milliseconds. */
export async function deleteExpiredCreates(prisma: PrismaClient, now: number): Promise<void> {
  const expiredAt = new Date(now - IDEMPOTENCY_TTL_MS);
  let deleted: number;
  do {
    deleted = await prisma.$executeRaw`
      DELETE FROM idempotent_creates WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM idempotent_creates WHERE created_at <= ${expiredAt} LIMIT ${DELETE_BATCH_SIZE}))`;
  } while (deleted === DELETE_BATCH_SIZE);
}

async function insertRow<Output>(prisma: PrismaClient, insert: Insert): Promise<Output> {
  const rows = await prisma.$queryRaw<[{ response: Output }]>`
    INSERT INTO ${Prisma.raw(insert.into)} VALUES (${insert.values})
    RETURNING ${Prisma.raw(insert.returning)} AS response`;
  return rows[0].response;
}

/**
 * `running`: another create with this key, on any node, holds the advisory lock, which is released when its statement
 * ends. `exists`: one has succeeded before.
 */
async function tryInsert<Output>(
  prisma: PrismaClient,
  { into, values, returning }: Insert,
  { apiKeyId, operation, batchIndex, header, receivedAt }: IdempotencyKey,
): Promise<{ output: Output } | 'running' | 'exists'> {
  const { value: key, bodyHash } = header;
  const lockName = `${apiKeyId} ${operation} ${batchIndex} ${key}`;
  try {
    const [row] = await prisma.$queryRaw<{ response: Output }[]>`
      WITH lock AS MATERIALIZED (
        SELECT pg_try_advisory_xact_lock(hashtextextended(${lockName}, 0)) AS is_acquired
      ), created AS (
        INSERT INTO ${Prisma.raw(into)} SELECT ${values} FROM lock WHERE is_acquired
        RETURNING ${Prisma.raw(returning)} AS response
      )
      INSERT INTO idempotent_creates (api_key_id, operation, key, call, body_hash, response, created_at)
      SELECT ${apiKeyId}::uuid, ${operation}, ${key}, ${batchIndex}, ${bodyHash}, response, ${new Date(receivedAt)}
      FROM created
      RETURNING response`;
    return row === undefined ? 'running' : { output: row.response };
  } catch (error) {
    if (readSqlState(error) === UNIQUE_VIOLATION) return 'exists';
    throw error;
  }
}

/** Undefined when the stored create has expired, in which case it is deleted here, or has been deleted since. */
async function findStored<Output>(
  prisma: PrismaClient,
  { apiKeyId, operation, batchIndex, header, receivedAt }: IdempotencyKey,
): Promise<{ output: Output } | undefined> {
  const id = { apiKeyId, key: header.value, operation, batchIndex };
  const stored = await prisma.idempotentCreate.findUnique({
    where: { apiKeyId_key_operation_batchIndex: id },
  });
  if (stored === null) return undefined;
  if (stored.createdAt.getTime() <= receivedAt - IDEMPOTENCY_TTL_MS) {
    await prisma.idempotentCreate.deleteMany({ where: { ...id, createdAt: stored.createdAt } });
    return undefined;
  }
  if (!Buffer.from(stored.bodyHash).equals(header.bodyHash)) throw new ApiError('idempotency_key_reused');
  return { output: stored.response as Output };
}

import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../database/client.js';
import { readSqlState } from '../database/outage.js';
import { ApiError } from '../errors.js';
import { type IdempotencyKey, REMEMBERED_MS } from './idempotency.js';
import { type NewPet, type Pet, pet as petSchema } from './schema.js';

type PrismaClient = Database['prisma'];

export interface Creation {
  readonly pet: Pet;
  /** Whether this is the answer of an earlier create */
  readonly isReplay: boolean;
}

/** Before each look whether the first create with a key has ended, in milliseconds. None holds a connection meanwhile. */
const WAITS_MS = [0, 20, 50, 100, 200, 400];
/** SQLSTATE, PostgreSQL's appendix A */
const UNIQUE_VIOLATION = '23505';

/**
 * Creates, or repeats the answer of the create that had the key before. The database alone decides who is first: the
 * key's row and the pet are one statement, which runs for one at a time.
 *
 * @throws ApiError idempotency_key_reused, idempotency_key_in_use
 */
export async function createOnce(
  prisma: PrismaClient,
  newPet: NewPet,
  idempotencyKey: IdempotencyKey,
  now: number,
): Promise<Creation> {
  const { apiKeyId, key, call, bodyHash } = idempotencyKey;
  for (const wait of WAITS_MS) {
    if (wait > 0) await delay(wait);
    const inserted = await insertOnce(prisma, newPet, idempotencyKey, now);
    if (inserted === 'in use') continue;
    if (inserted !== 'taken') return { pet: inserted, isReplay: false };
    const where = { apiKeyId_key_call: { apiKeyId, key, call } };
    const stored = await prisma.idempotentCreate.findUnique({ where });
    if (stored === null) continue;
    if (stored.createdAt.getTime() <= now - REMEMBERED_MS) {
      await prisma.idempotentCreate.deleteMany({
        where: { apiKeyId, key, call, createdAt: stored.createdAt },
      });
      continue;
    }
    if (Buffer.from(stored.bodyHash).equals(bodyHash))
      return { pet: petSchema.parse(stored.response), isReplay: true };
    throw new ApiError(
      'idempotency_key_reused',
      'This Idempotency-Key was used with another body: choose a new one.',
    );
  }
  throw new ApiError(
    'idempotency_key_in_use',
    'The first request with this Idempotency-Key still runs. Try again.',
  );
}

/**
 * `in use` while another create with the key runs, here or on another node: it holds the advisory lock until its
 * statement ends. `taken` when one has succeeded.
 */
async function insertOnce(
  prisma: PrismaClient,
  { name, categoryId, status }: NewPet,
  { apiKeyId, key, call, bodyHash }: IdempotencyKey,
  now: number,
): Promise<Pet | 'in use' | 'taken'> {
  try {
    const [row] = await prisma.$queryRaw<{ response: unknown }[]>`
      WITH turn AS MATERIALIZED (
        SELECT pg_try_advisory_xact_lock(hashtextextended(${`${apiKeyId} ${call} ${key}`}, 0)) AS is_ours
      ), created AS (
        INSERT INTO pets (name, category_id, status)
        SELECT ${name}, ${BigInt(categoryId)}, ${status}::pet_status FROM turn WHERE is_ours
        RETURNING json_build_object('id', id, 'name', name, 'categoryId', category_id, 'status', status) AS response
      )
      INSERT INTO idempotent_creates (api_key_id, key, call, body_hash, response, created_at)
      SELECT ${apiKeyId}::uuid, ${key}, ${call}, ${bodyHash}, response, ${new Date(now)} FROM created
      RETURNING response`;
    return row === undefined ? 'in use' : petSchema.parse(row.response);
  } catch (error) {
    if (readSqlState(error) === UNIQUE_VIOLATION) return 'taken';
    throw error;
  }
}

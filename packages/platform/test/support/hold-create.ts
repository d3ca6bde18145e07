import type pg from 'pg';
import { type IdempotencyKey, keySql, toIdValues, toKeyParameter } from '../../src/tables/idempotency.js';

/** Takes the lock that a create with a key holds while it runs, until the transaction of `client` ends. */
export async function holdCreate(
  client: pg.ClientBase,
  key: Omit<IdempotencyKey, 'batchIndex' | 'bodyHash'>,
): Promise<void> {
  const { lock } = keySql((name) => name, toKeyParameter);
  const values = toIdValues({ ...key, batchIndex: 0, bodyHash: new Uint8Array() });
  await client.query(`SELECT pg_advisory_xact_lock(${lock})`, values);
}

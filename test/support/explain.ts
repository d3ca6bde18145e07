import type pg from 'pg';
import { onEveryConnection } from './every-connection.js';

/**
 * The plan of a statement that the service has prepared.
 *
 * @param pool whose connections the service runs it on. Each has prepared only what it has run.
 * @param name under which it is prepared
 * @param values SQL, as in EXECUTE
 */
export async function explainPrepared(pool: pg.Pool, name: string, values: string): Promise<string> {
  const plans = await onEveryConnection(pool, async (client) => {
    const known = await client.query('SELECT FROM pg_prepared_statements WHERE name = $1', [name]);
    if (known.rowCount === 0) return undefined;
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN EXECUTE "${name}" (${values})`);
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  });
  const plan = plans.find((each) => each !== undefined);
  if (plan === undefined) throw new Error(`No connection has prepared ${name}`);
  return plan;
}

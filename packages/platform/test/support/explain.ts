import type pg from 'pg';
import { onEveryConnection } from './every-connection.js';

interface Read {
  readonly Plan: Readonly<Record<'Shared Hit Blocks' | 'Shared Read Blocks', number>>;
}

/** How many pages of tables and indexes PostgreSQL reads for a statement that the service has prepared: see explainPrepared. */
export async function countPagesRead(pool: pg.Pool, name: string, values: string): Promise<number> {
  const [{ Plan }] = JSON.parse(
    await explainPrepared(pool, name, values, 'ANALYZE, BUFFERS, FORMAT JSON'),
  ) as [Read];
  return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'];
}

/**
 * The plan of a statement that the service has prepared.
 *
 * @param pool whose connections the service runs it on. Each has prepared only what it has run.
 * @param name under which it is prepared
 * @param values SQL, as in EXECUTE
 * @param options of EXPLAIN
 */
export async function explainPrepared(
  pool: pg.Pool,
  name: string,
  values: string,
  options = 'COSTS',
): Promise<string> {
  const plans = await onEveryConnection(pool, async (client) => {
    const known = await client.query('SELECT FROM pg_prepared_statements WHERE name = $1', [name]);
    if (known.rowCount === 0) return undefined;
    const sql = `EXPLAIN (${options}) EXECUTE "${name}" (${values})`;
    const { rows } = await client.query<{ 'QUERY PLAN': string | object }>(sql);
    const lines = rows.map((row) => row['QUERY PLAN']);
    return lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
  });
  const plan = plans.find((each) => each !== undefined);
  if (plan === undefined) throw new Error(`No connection has prepared ${name}`);
  return plan;
}

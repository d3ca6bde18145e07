import type pg from 'pg';

/** The server is a standby, which refuses everything that the service counts and creates. */
export class StandbyError extends Error {
  override readonly name = 'StandbyError';

  constructor() {
    super('DATABASE_URL leads to a standby: let it lead to the primary, or promote this server');
  }
}

/** @throws StandbyError until the server is promoted */
export async function checkPrimary(pool: Pick<pg.Pool, 'query'>): Promise<void> {
  const { rows } = await pool.query<{ pg_is_in_recovery: boolean }>('SELECT pg_is_in_recovery()');
  if (rows[0]?.pg_is_in_recovery) throw new StandbyError();
}

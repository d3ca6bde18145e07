import type pg from 'pg';

/**
 * Does the same on each connection that a pool may have. All are taken before any is used. Otherwise one could be
 * taken twice, and one that is still busy be missed.
 */
export async function onEveryConnection<Result>(
  pool: pg.Pool,
  use: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result[]> {
  const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
  try {
    return await Promise.all(clients.map(use));
  } finally {
    for (const client of clients) client.release();
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Pool } from './pool.js';

/** The message of pg's error for a query without a response, which has no code. */
const READ_TIMEOUT = 'Query read timeout';
/** How often the server is asked about processes that may still be at work. */
const ASK_INTERVAL_MS = 300;

/** Busy processes only: one that waits for its client notices that the connection was closed. */
const FIND_BUSY = `
  SELECT pid FROM pg_stat_activity
  WHERE pid = ANY ($1) AND usename = current_user AND state IS DISTINCT FROM 'idle'`;

/** With the class of a pool's connections */
type OwnConfig = pg.ClientConfig & { readonly Client: new (config: pg.ClientConfig) => pg.Client };

/**
 * Keeps the server processes of a pool within its size. When a response does not come, this process closes the connection,
 * but PostgreSQL may go on: a commit that waits for a standby ends neither by `statement_timeout` nor because its client is
 * gone. Such an orphaned backend keeps its place in the pool until the server says, over a connection of its own, that it
 * has ended. So a pool has at most its size of them, and one more that asks.
 *
 * A process that the server does not know as busy was cut off instead, by a firewall that lost its state perhaps. Then the
 * idle connections of the pool probably are dead, too, and are replaced.
 *
 * @param config of a connection of the pool
 */
export function countOrphanedBackends(pool: Pool, config: OwnConfig): void {
  const orphans = new Set<number>();
  let isAsking = false;
  const askUntilEnded = async () => {
    isAsking = true;
    while (orphans.size > 0 && !pool.ending) {
      const asked = [...orphans];
      // Without an answer, all of them count as busy.
      const busy = await findBusy(config, asked).catch(() => new Set(asked));
      const gone = asked.filter((pid) => !busy.has(pid));
      for (const pid of gone) orphans.delete(pid);
      pool.orphaned = orphans.size;
      if (gone.length > 0) discardIdle(pool);
      if (orphans.size > 0) await delay(ASK_INTERVAL_MS, undefined, { ref: false });
    }
    isAsking = false;
  };
  pool.on('release', (error, released) => {
    const client = released as pg.PoolClient & pg.Client & { readonly processID: number };
    const isUnanswered = error?.message === READ_TIMEOUT || endOpenTransaction(error, client);
    if (!isUnanswered) return;
    orphans.add(client.processID);
    pool.orphaned = orphans.size;
    if (!isAsking) void askUntilEnded();
  });
}

/**
 * Prisma returns a connection to the pool as healthy even when its COMMIT or ROLLBACK got no response in time. The
 * next query on it would run inside the open transaction, and be lost with it after it had been acknowledged.
 */
function endOpenTransaction(error: Error | undefined, client: pg.Client): boolean {
  const status = client.getTransactionStatus();
  if (error || (status !== 'T' && status !== 'E')) return false;
  void client.end().catch(() => {});
  return true;
}

async function findBusy(config: OwnConfig, pids: readonly number[]): Promise<ReadonlySet<number>> {
  const client = new config.Client(config);
  try {
    await client.connect();
    const { rows } = await client.query<{ pid: number }>(FIND_BUSY, [pids]);
    return new Set(rows.map(({ pid }) => pid));
  } finally {
    void client.end().catch(() => {});
  }
}

/**
 * Ends the idle connections of a pool: it takes each one out and destroys it. When it is called twice in a row, it may ask
 * for more connections than are idle. The pool then opens new ones, and there is no client if that takes too long.
 */
function discardIdle(pool: pg.Pool): void {
  for (let count = pool.idleCount; count > 0; count -= 1) {
    pool.connect((_error, client) => client?.release(true));
  }
}

import { readCode } from './outage.js';
import { type Pool, type PoolLimit, TOO_MANY_CONNECTIONS } from './pool.js';

/** How often `onRefused` is called at most. */
const NOTICE_INTERVAL_MS = 3_600_000;

/**
 * Lets the pools of a process go on together where the server allows fewer connections than their sizes, down to one each:
 * once each has been opened, none opens a further one while another has none, and one that has several gives one up for it.
 *
 * @param onRefused called with a refusal after which the process goes on, once an hour at most
 */
export function createSharedLimit(onRefused: (error: Error, count: number, most: number) => void) {
  const pools: Pool[] = [];
  let keepsOneEach = false;
  let noticedAtMs = Number.NEGATIVE_INFINITY;
  /** Opens the first connection of a pool. If the server refuses it, another pool gives one up, for the next attempt. */
  const open = async (pool: Pool) => {
    try {
      (await pool.connect()).release();
    } catch (error) {
      const other = pools.find(({ held }) => held > 1);
      if (readCode(error) === TOO_MANY_CONNECTIONS)
        (await other?.connect().catch(() => undefined))?.release(true);
      throw error;
    }
  };
  /** Also waits for pools that are opening their first connection. */
  const openEmpty = async (among = pools) => {
    const empty = among.filter(({ isEmpty }) => isEmpty);
    await Promise.all(empty.map(open));
  };
  const limit: PoolLimit = {
    add(pool) {
      pools.push(pool);
      // After an outage, the first pool to connect lets each other open one before it opens a second.
      pool.on('connect', () => {
        if (keepsOneEach) openEmpty(pools.filter(({ totalCount }) => totalCount === 0)).catch(() => {});
      });
    },
    mayGrow: () => !keepsOneEach || !pools.some(({ isEmpty }) => isEmpty),
    noteRefusal(error) {
      const goesOn = !pools.some(({ isEmpty }) => isEmpty);
      if (!goesOn || performance.now() < noticedAtMs + NOTICE_INTERVAL_MS) return;
      noticedAtMs = performance.now();
      const count = pools.reduce((total, { held }) => total + held, 0);
      const most = pools.reduce((total, { size }) => total + size, 0);
      onRefused(error, count, most);
    },
  };
  return {
    limit,
    /** The pools that were opened with the limit */
    pools: pools as readonly Pool[],
    /** Opens the first connection of each pool, and sees to it from now on that each can have one. */
    async connect() {
      keepsOneEach = true;
      await openEmpty();
    },
    openEmpty: () => openEmpty(),
  };
}

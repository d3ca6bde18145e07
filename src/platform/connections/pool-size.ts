import type pg from 'pg';

/** How many connections a pool has and may have. */
export interface PoolSize {
  readonly pool: pg.Pool;
  /** The size with which the pool was opened */
  readonly most: number;
  /** Connections that work, idle or in use */
  readonly held: number;
  /** Server processes that keep a place in the pool, although it has closed their connections */
  orphaned: number;
  /** How many the server allows, `orphaned` among them; `most` until it refuses one */
  allowed: number;
}

export function createPoolSize(pool: pg.Pool): PoolSize {
  const most = pool.options.max;
  let [orphaned, allowed, borrowed] = [0, most, 0];
  pool.on('acquire', () => (borrowed += 1));
  pool.on('release', () => (borrowed -= 1));
  const apply = () => {
    pool.options.max = Math.max(0, Math.min(most, allowed) - orphaned);
  };
  return {
    pool,
    most,
    get held() {
      return pool.idleCount + borrowed;
    },
    get orphaned() {
      return orphaned;
    },
    set orphaned(count) {
      orphaned = count;
      apply();
    },
    get allowed() {
      return allowed;
    },
    set allowed(count) {
      allowed = count;
      apply();
    },
  };
}

import type { Connections } from '../database/connections.js';

/** For how many days usage is shown, today included. Of a key without any it is kept until the key is used again. */
export const USAGE_DAYS = 30;
const DAY_MS = 86_400_000;
export const FLUSH_INTERVAL_MS = 20_000;
/** The most sums of key, day and operation held at once, about 25 MB. Beyond that, new ones are not counted. */
const MAX_SUMS = 100_000;
/** The most sums added by one statement: few enough for its row locks to be short. */
const BATCH_SIZE = 200;

/** How often a key called an operation on one day. */
export interface Usage {
  /** In UTC, as YYYY-MM-DD */
  readonly day: string;
  readonly operation: string;
  readonly requests: number;
}

/** `day` is the last one on which the key called the operation. */
export interface KeyUsage extends Usage {
  readonly id: string;
  readonly name: string;
}

/** Calls of one key that are counted together */
type Sum = Usage & { readonly apiKeyId: string; requests: number };

export type UsageStore = ReturnType<typeof createUsageStore>;

/** Rows are inserted in primary-key order, so that concurrent flushes from several nodes cannot deadlock. */
const ADD = {
  name: 'usage-add',
  text: `
  INSERT INTO api_key_usage (api_key_id, day, operation, requests)
  SELECT added.* FROM unnest($1::uuid[], $2::date[], $3::text[], $4::bigint[])
    AS added (api_key_id, day, operation, requests)
  JOIN api_keys ON api_keys.id = added.api_key_id
  ORDER BY 1, 2, 3
  ON CONFLICT (api_key_id, day, operation)
  DO UPDATE SET requests = least(api_key_usage.requests + excluded.requests, 9007199254740991)`,
};

const READ = `
  SELECT day::text, operation, requests::float8 AS requests FROM api_key_usage
  WHERE api_key_id = $1 AND day >= $2 ORDER BY day, operation COLLATE "C"`;

const READ_TOTALS = `
  SELECT operation, sum(requests)::float8 AS requests FROM api_key_usage
  WHERE api_key_id = $1 AND day >= $2 GROUP BY operation ORDER BY operation COLLATE "C"`;

const READ_KEYS = `
  SELECT id, name, operation, sum(requests)::float8 AS requests, max(day)::text AS day
  FROM api_key_usage JOIN api_keys ON api_keys.id = api_key_id
  WHERE day >= $1 GROUP BY id, operation`;

const DELETE_EXPIRED = `
  DELETE FROM api_key_usage
  WHERE day < $1 AND api_key_id IN (SELECT api_key_id FROM api_key_usage WHERE day >= $1)`;

/** All queries on usage. `now` is in Unix milliseconds. */
export function createUsageStore({ pool, writes }: Pick<Connections, 'pool' | 'writes'>) {
  return {
    /** Adds to the stored counts, all rows or none. Rows of a key that no longer exists are skipped. */
    async add(rows: readonly Sum[]) {
      await writes.query(ADD, [
        rows.map(({ apiKeyId }) => apiKeyId),
        rows.map(({ day }) => day),
        rows.map(({ operation }) => operation),
        rows.map(({ requests }) => requests),
      ]);
    },
    /** The calls of a key in the last 30 days, by day and operation; days without a call are left out. */
    async read(apiKeyId: string, now: number) {
      const { rows } = await pool.query<Usage>(READ, [apiKeyId, firstDay(now)]);
      return rows;
    },
    /** The calls of a key in the last 30 days by operation, in the order of their names. */
    async readTotals(apiKeyId: string, now: number) {
      const { rows } = await pool.query<Omit<Usage, 'day'>>(READ_TOTALS, [apiKeyId, firstDay(now)]);
      return rows;
    },
    /** The calls of all keys in the last 30 days by key and operation. */
    async readKeys(now: number) {
      const { rows } = await pool.query<KeyUsage>(READ_KEYS, [firstDay(now)]);
      return rows;
    },
    /** Deletes counts that are older than 30 days, except those that say when an idle key was last used. */
    deleteExpired: async (now: number) => pool.query(DELETE_EXPIRED, [firstDay(now)]),
  };
}

/** The UTC day of a moment, as YYYY-MM-DD. */
function toDay(now: number): string {
  return new Date(now).toISOString().slice(0, 10);
}

function firstDay(now: number): string {
  return toDay(now - (USAGE_DAYS - 1) * DAY_MS);
}

export interface UsageOptions {
  readonly store: Pick<UsageStore, 'add'>;
  /** The names that are counted: clients can make up any others. */
  readonly operations: readonly string[];
  /** Unix milliseconds */
  readonly now: () => number;
  /** Called for the first failure of an outage */
  readonly warn: (error: unknown) => void;
}

/**
 * Counts the calls of each key in memory, and adds the sums to the database within 30 seconds.
 *
 * Sums that could not be added are put back. A process that is killed loses its counts since the last flush; when the
 * response to a COMMIT is lost, up to 30 s of counts are added twice. Usage is indicative; limits are counted elsewhere,
 * and exactly.
 */
export class UsageCounter {
  readonly #options: UsageOptions;
  readonly #sums = new Map<string, Sum>();
  #hasWarned = false;
  #dropped = 0;
  /** Formatted once a day, not for every request */
  #day = { name: '', startsAt: Number.POSITIVE_INFINITY };

  constructor(options: UsageOptions) {
    this.#options = options;
  }

  /** How many sums are not stored yet */
  get waiting(): number {
    return this.#sums.size;
  }

  /** How many requests were not counted, for want of room */
  get dropped(): number {
    return this.#dropped;
  }

  /** Counts one request of a key for each of the operations. */
  count(apiKeyId: string, called: readonly string[]): void {
    const { now, operations } = this.#options;
    const nowMs = now();
    if (nowMs < this.#day.startsAt || nowMs >= this.#day.startsAt + DAY_MS)
      this.#day = { name: toDay(nowMs), startsAt: Math.floor(nowMs / DAY_MS) * DAY_MS };
    const day = this.#day.name;
    for (const operation of called) {
      if (operations.includes(operation)) this.#add({ apiKeyId, day, operation, requests: 1 });
    }
  }

  /** Adds the sums to the database. Never rejects: sums that cannot be added are kept for the next flush. */
  async flush(): Promise<void> {
    const rows = [...this.#sums.values()].sort((a, b) => a.apiKeyId.localeCompare(b.apiKeyId));
    this.#sums.clear();
    try {
      while (rows.length > 0) {
        await this.#options.store.add(rows.slice(0, BATCH_SIZE));
        rows.splice(0, BATCH_SIZE);
      }
      this.#hasWarned = false;
    } catch (error) {
      for (const row of rows) this.#add(row);
      if (!this.#hasWarned) this.#options.warn(error);
      this.#hasWarned = true;
    }
  }

  /** Flushes for the last time. Call it when no request is running and the database is still open. */
  async close(): Promise<void> {
    await this.flush();
    // An unavailable database gets a second chance, which takes a few seconds at most.
    if (this.#sums.size > 0) await this.flush();
  }

  #add(row: Sum): void {
    const name = `${row.apiKeyId} ${row.day} ${row.operation}`;
    const sum = this.#sums.get(name);
    if (sum !== undefined) sum.requests += row.requests;
    else if (this.#sums.size < MAX_SUMS) this.#sums.set(name, row);
    else this.#dropped += row.requests;
  }
}

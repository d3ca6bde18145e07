import type { Connections } from '../database/connections.js';
import type { InSchema } from '../database/schema-name.js';

/** For how many days usage is shown, today included. Of a key without any it is kept until the key is used again. */
export const USAGE_DAYS = 30;
export const DAY_MS = 86_400_000;
/** The most batches that one statement adds up, few enough to stay within its timeout if no two have a key in common. */
const MAX_BATCHES = 64;

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

/** Calls of one operation on one day, by the ids of the keys */
export interface UsageBatch {
  /** Since 1970-01-01 */
  readonly day: number;
  readonly operation: string;
  readonly sums: readonly (readonly [apiKeyId: string, requests: number])[];
}

export type UsageStore = ReturnType<typeof createUsageStore>;

function createStatements(inSchema: InSchema) {
  const [keys, usage, batches] = ['api_keys', 'api_key_usage', 'api_key_usage_batches'].map(inSchema);
  return {
    add: {
      name: 'usage-add',
      text: `
        INSERT INTO ${batches} (day, operation, api_key_ids, requests)
        VALUES ($1::pg_catalog.date, $2, $3::pg_catalog.uuid[], $4::bigint[])`,
      emptyValues: ['2000-01-01', 'none', '{}', '{}'],
    },
    /**
     * Moves batches to api_key_usage. Those that begin with neighbouring keys are moved together, because nodes that
     * share keys have sums of the same ones. In primary-key order, so that nodes that do this at once cannot deadlock.
     */
    addUp: {
      name: 'usage-add-up',
      text: `
        WITH next AS (
          SELECT id FROM ${batches}
          ORDER BY day, operation, first_api_key_id LIMIT ${MAX_BATCHES} FOR UPDATE SKIP LOCKED
        ), batches AS (
          DELETE FROM ${batches} AS batch USING next WHERE batch.id = next.id RETURNING batch.*
        ), added AS (
          SELECT pg_catalog.unnest(api_key_ids) AS api_key_id, day, operation, pg_catalog.unnest(requests) AS requests
          FROM batches
        ), sums AS (
          SELECT api_key_id, day, operation, pg_catalog.sum(requests) FROM added GROUP BY 1, 2, 3
        ), moved AS (
          INSERT INTO ${usage} AS stored (api_key_id, day, operation, requests)
          SELECT sums.* FROM sums JOIN ${keys} AS keys ON keys.id = api_key_id ORDER BY 1, 2, 3
          ON CONFLICT (api_key_id, day, operation)
          DO UPDATE SET requests = least(stored.requests + excluded.requests, 9007199254740991)
        )
        SELECT pg_catalog.count(*)::integer AS count FROM batches`,
      emptyValues: [],
    },
    read: `
      SELECT ${daySql('day')} AS day, operation, requests FROM ${usage} AS usage
      WHERE api_key_id = $1 AND usage.day >= $2 ORDER BY usage.day, operation COLLATE pg_catalog."C"`,
    readTotals: `
      SELECT operation, pg_catalog.sum(requests) AS requests FROM ${usage}
      WHERE api_key_id = $1 AND day >= $2 GROUP BY operation ORDER BY operation COLLATE pg_catalog."C"`,
    readKeys: `
      SELECT id, name, operation, pg_catalog.sum(requests) AS requests, ${daySql('pg_catalog.max(day)')} AS day
      FROM ${usage} JOIN ${keys} AS keys ON keys.id = api_key_id
      WHERE day >= $1 GROUP BY id, operation`,
    deleteExpired: `
      DELETE FROM ${usage} WHERE day < $1 AND api_key_id IN (SELECT api_key_id FROM ${usage} WHERE day >= $1)`,
  };
}

/** As YYYY-MM-DD in every DateStyle. */
const daySql = (day: string) => `pg_catalog.to_char(${day}, 'YYYY-MM-DD')`;

/** PostgreSQL's whole numbers arrive as text, which no setting changes. They are within what a number of JavaScript holds. */
const withNumbers = <Row extends { readonly requests: string }>(rows: readonly Row[]) =>
  rows.map((row) => ({ ...row, requests: Number(row.requests) }));

type Stored<Row> = Omit<Row, 'requests'> & { readonly requests: string };

/** All queries on usage. `now` is in Unix milliseconds. */
export function createUsageStore({
  pool,
  writes,
  inSchema,
}: Pick<Connections, 'pool' | 'writes' | 'inSchema'>) {
  const sql = createStatements(inSchema);
  writes.register(sql.add, sql.addUp);
  return {
    /** Stores sums, all or none, to be added up later. */
    async add({ day, operation, sums }: UsageBatch) {
      const [ids, requests] = [encodeUuids(sums.map(([id]) => id)), sums.map(([, count]) => count)];
      await writes.query(sql.add, [toDay(day * DAY_MS), operation, ids, `{${requests.join()}}`]);
    },
    /** Adds up what all nodes have stored. Sums of a key that no longer exists are dropped. */
    async addUp() {
      let moved: { count: number } | undefined;
      do [moved] = await writes.query<{ count: number }>(sql.addUp, []);
      while (moved?.count === MAX_BATCHES);
    },
    /** The calls of a key in the last 30 days, by day and operation; days without a call are left out. */
    async read(apiKeyId: string, now: number) {
      const { rows } = await pool.query<Stored<Usage>>(sql.read, [apiKeyId, firstDay(now)]);
      return withNumbers(rows);
    },
    /** The calls of a key in the last 30 days by operation, in the order of their names. */
    async readTotals(apiKeyId: string, now: number) {
      const { rows } = await pool.query<Stored<Omit<Usage, 'day'>>>(sql.readTotals, [
        apiKeyId,
        firstDay(now),
      ]);
      return withNumbers(rows);
    },
    /** The calls of all keys in the last 30 days by key and operation. */
    async readKeys(now: number) {
      const { rows } = await pool.query<Stored<KeyUsage>>(sql.readKeys, [firstDay(now)]);
      return withNumbers(rows);
    },
    /** Deletes counts that are older than 30 days, except those that say when an idle key was last used. */
    deleteExpired: async (now: number) => pool.query(sql.deleteExpired, [firstDay(now)]),
  };
}

/** A uuid[] in PostgreSQL's binary format (array_recv in its sources), which it reads ten times as fast as text. */
function encodeUuids(ids: readonly string[]): Buffer {
  // Dimensions, whether there is a null, the type uuid, how many and from which index; then the size of each and itself
  const header = [1, 0, 2950, ids.length, 1].map((int32) => int32.toString(16).padStart(8, '0'));
  return Buffer.from(header.join('') + ids.map((id) => `00000010${id.replaceAll('-', '')}`).join(''), 'hex');
}

/** The UTC day of a moment, as YYYY-MM-DD. */
function toDay(now: number): string {
  return new Date(now).toISOString().slice(0, 10);
}

function firstDay(now: number): string {
  return toDay(now - (USAGE_DAYS - 1) * DAY_MS);
}

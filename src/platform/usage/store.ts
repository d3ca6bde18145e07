import type { Connections } from '../database/connections.js';
import { readCode } from '../database/outage.js';
import { createStatements } from './statements.js';

/** For how many days usage is shown unless others are asked for, today included. */
export const SHOWN_DAYS = 30;
export const DAY_MS = 86_400_000;
/** The most batches that one statement aggregates, few enough to stay within its timeout if no two have a key in common. */
const MAX_BATCHES = 64;
/** The most that a process aggregates in one period. */
const MAX_BATCHES_IN_PERIOD = 10_000;
/** As many as it takes to find the one batch of MAX_BATCHES that takes too long, and one more. */
const MAX_TIMEOUTS = Math.log2(MAX_BATCHES) + 2;
/** SQLSTATE: PostgreSQL has ended the statement at its timeout. */
const QUERY_CANCELED = '57014';

/** How many requests were admitted, and how many a limit or a ban denied */
export interface Counts {
  requests: number;
  denied: number;
}

/** How often a key called an operation on one day. */
export interface Usage extends Readonly<Counts> {
  /** In UTC, as YYYY-MM-DD */
  readonly day: string;
  readonly operation: string;
}

/** `day` is the last one on which the key called the operation. */
export interface KeyUsage extends Usage {
  readonly id: string;
  readonly name: string;
  readonly owner: string | null;
}

/** Calls of one operation on one day, by the ids of the keys */
export interface UsageBatch {
  /** Since 1970-01-01 */
  readonly day: number;
  readonly operation: string;
  readonly counts: readonly (readonly [apiKeyId: string, counts: Readonly<Counts>])[];
}

/** UTC days as YYYY-MM-DD, both included */
export interface DayRange {
  readonly from: string;
  readonly to: string;
}

export type UsageStore = ReturnType<typeof createUsageStore>;

type Stored<Row> = Omit<Row, keyof Counts> & Readonly<Record<keyof Counts, string>>;

/** PostgreSQL's whole numbers arrive as text, which no setting changes. They are within what a number of JavaScript holds. */
const withNumbers = <Row extends Readonly<Record<keyof Counts, string>>>(rows: readonly Row[]) =>
  rows.map((row) => ({ ...row, requests: Number(row.requests), denied: Number(row.denied) }));

/** All queries on usage. */
export function createUsageStore({
  pool,
  writes,
  inSchema,
}: Pick<Connections, 'pool' | 'writes' | 'inSchema'>) {
  const sql = createStatements(inSchema);
  writes.register(sql.append, sql.listBatches, sql.aggregate);
  /** How many batches one statement takes: fewer after a period in which that took too long */
  let size = MAX_BATCHES;
  return {
    /** Stores counts, all or none, to be aggregated later. */
    async append({ day, operation, counts }: UsageBatch) {
      const requests = counts.map(([, each]) => each.requests);
      const denied = counts.map(([, each]) => each.denied);
      const ids = encodeUuids(counts.map(([id]) => id));
      const values = [toDay(day * DAY_MS), operation, ids, `{${requests.join()}}`, `{${denied.join()}}`];
      await writes.query(sql.append, values);
    },
    /**
     * Aggregates what all nodes have appended, one statement at a time, so that creates keep their connections. One that
     * times out is tried with half as many batches; a single one is left for the next period. Counts of a key that no
     * longer exists are dropped.
     *
     * @throws the error of a timeout if something was left for that; and what else the database throws
     */
    async aggregate() {
      const listed = await writes.query<{ id: string }>(sql.listBatches, [MAX_BATCHES_IN_PERIOD]);
      const ids = listed.map(({ id }) => id);
      let [timeouts, leftOver]: [number, unknown] = [0, undefined];
      while (ids.length > 0) {
        const tried = ids.slice(0, size);
        const timeout = await tryToAggregate(tried);
        timeouts += timeout === undefined ? 0 : 1;
        if (timeout === undefined) ids.splice(0, tried.length);
        else if (timeouts === MAX_TIMEOUTS) throw timeout;
        else if (tried.length > 1) size = Math.ceil(tried.length / 2);
        else {
          [leftOver] = [timeout, ids.shift()];
          size = MAX_BATCHES;
        }
      }
      if (timeouts === 0) size = Math.min(size * 2, MAX_BATCHES);
      if (leftOver !== undefined) throw leftOver;
    },
    /** How many seconds ago the oldest counts that are not aggregated yet were appended; 0 if there are none. */
    async readAge() {
      const { rows } = await pool.query<{ seconds: number }>(sql.readAge);
      return rows[0]?.seconds ?? 0;
    },
    /** The calls of a key by day and operation, newest first; days without a call are left out. */
    async read(apiKeyId: string, { from, to }: DayRange) {
      const { rows } = await pool.query<Stored<Usage>>(sql.read, [apiKeyId, from, to]);
      return withNumbers(rows);
    },
    /** From the first day to the last of which anything is stored; undefined if nothing is. */
    async readStoredDays(): Promise<DayRange | undefined> {
      const { rows } = await pool.query<DayRange | { from: null; to: null }>(sql.readStoredDays);
      return rows[0]?.from == null ? undefined : rows[0];
    },
    /** The calls by key and operation, of these keys or of all. */
    async readKeys({ from, to }: DayRange, ids?: readonly string[]) {
      const { rows } = await pool.query<Stored<KeyUsage>>(sql.readKeys, [from, to, ids]);
      return withNumbers(rows);
    },
    /**
     * Deletes what is older than a number of days by the clock of the database, today included. The last counts of a key
     * stay until it is used again: they say when that was.
     */
    deleteExpired: async (days: number) => pool.query(sql.deleteExpired, [days]),
  };

  /** Resolves with the error when it takes too long: then nothing has changed. */
  async function tryToAggregate(ids: readonly string[]): Promise<unknown> {
    try {
      await writes.query(sql.aggregate, [`{${ids.join()}}`]);
      return undefined;
    } catch (error) {
      if (readCode(error) === QUERY_CANCELED) return error;
      throw error;
    }
  }
}

/** A uuid[] in PostgreSQL's binary format (array_recv in its sources), which it reads ten times as fast as text. */
function encodeUuids(ids: readonly string[]): Buffer {
  // Dimensions, whether there is a null, the type uuid, how many and from which index; then the size of each and itself
  const header = [1, 0, 2950, ids.length, 1].map((int32) => int32.toString(16).padStart(8, '0'));
  return Buffer.from(header.join('') + ids.map((id) => `00000010${id.replaceAll('-', '')}`).join(''), 'hex');
}

/** The UTC day of a moment in Unix milliseconds, as YYYY-MM-DD. */
export function toDay(now: number): string {
  return new Date(now).toISOString().slice(0, 10);
}

/** The days that are shown unless others are asked for. `now` is in Unix milliseconds. */
export function lastDays(now: number): DayRange {
  return { from: toDay(now - (SHOWN_DAYS - 1) * DAY_MS), to: toDay(now) };
}

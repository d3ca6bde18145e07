import type { Connections, Queries } from '../connections/connections.js';
import { createStatements } from './statements.js';

/** For how many days usage is shown unless others are asked for, today included. */
export const SHOWN_DAYS = 30;
export const DAY_MS = 86_400_000;

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

/** `day` is the last day on which the key called the operation. */
export interface KeyUsage extends Usage {
  readonly id: string;
  readonly name: string;
  readonly owner: string | null;
  /** For several days, how many requests there were on each of the last SHOWN_DAYS, admitted and denied */
  readonly byDay?: Readonly<Record<string, number>>;
}

/** How often the keys of an owner, or those without one, called an operation. */
export interface OwnerUsage extends Readonly<Counts> {
  readonly owner: string | null;
  readonly operation: string;
}

/** A count to add to the usage of a key. */
export interface NewUsage extends Usage {
  readonly apiKeyId: string;
}

/** UTC days as YYYY-MM-DD, both included */
export interface DayRange {
  readonly from: string;
  readonly to: string;
}

export type UsageStore = ReturnType<typeof createUsageStore>;

type Stored<Row> = Omit<Row, keyof Counts> & Readonly<Record<keyof Counts, string>>;

/** A bigint arrives as text, whatever the settings are, and fits into a JavaScript number. */
const withNumbers = <Row extends Readonly<Record<keyof Counts, string>>>(rows: readonly Row[]) =>
  rows.map((row) => ({ ...row, requests: Number(row.requests), denied: Number(row.denied) }));

/** All queries on usage. */
export function createUsageStore({
  pool,
  writes,
  inSchema,
}: Queries & Pick<Connections, 'writes' | 'inSchema'>) {
  const sql = createStatements(inSchema);
  writes.register(sql.add);
  return {
    /** Adds counts to what is stored, all or none. No two may be of one key, day and operation. */
    async add(rows: readonly NewUsage[]): Promise<void> {
      await writes.query(sql.add, [JSON.stringify(rows)]);
    },
    /** The calls of a key by day and operation, newest first; days without a call are left out. */
    async read(apiKeyId: string, { from, to }: DayRange) {
      const { rows } = await pool.query<Stored<Usage>>(sql.read.text, [apiKeyId, from, to]);
      return withNumbers(rows);
    },
    /** The calls by key and operation, of these keys or of all. */
    async readKeys({ from, to }: DayRange, ids?: readonly string[]) {
      const { from: firstShown } = lastDays(Date.parse(to));
      const { rows } = await pool.query<Stored<KeyUsage>>(sql.readKeys, [from, to, ids, firstShown]);
      return withNumbers(rows);
    },
    /** The calls by owner and operation, of these keys or of all. */
    async readOwners({ from, to }: DayRange, ids?: readonly string[]) {
      const { rows } = await pool.query<Stored<OwnerUsage>>(sql.readOwners, [from, to, ids]);
      return withNumbers(rows);
    },
    /** The days on which these keys, or any, have called something, newest first. */
    async findDays({ from, to }: DayRange, ids?: readonly string[]) {
      const found =
        ids === undefined
          ? pool.query<{ day: string }>(sql.findDays, [from, to])
          : pool.query<{ day: string }>(sql.findDaysOfKeys, [from, to, ids]);
      return (await found).rows.map(({ day }) => day);
    },
    /** The calls on one day by key and operation, of these keys or of all. All days at once may not fit into memory. */
    async readKeysOnDay(day: string, ids?: readonly string[]) {
      const { rows } = await pool.query<Stored<KeyUsage>>(sql.readKeysOnDay, [day, ids]);
      return withNumbers(rows);
    },
    /**
     * Deletes what is older than a number of days by the clock of the database, today included. The last counts of a key
     * stay until it is used again, because they say when it was last used.
     */
    deleteExpired: async (days: number) => writes.pool.query(sql.deleteExpired, [days]),
  };
}

/** Reads the usage of a key as requests read: by a statement that readiness tries. */
export function createUsageReader({ reads, inSchema }: Pick<Connections, 'reads' | 'inSchema'>) {
  const { read } = createStatements(inSchema);
  reads.register(read);
  return async (apiKeyId: string, { from, to }: DayRange) =>
    withNumbers(await reads.query<Stored<Usage>>(read, [apiKeyId, from, to]));
}

/** The UTC day of a moment in Unix milliseconds, as YYYY-MM-DD. */
export function toDay(now: number): string {
  return new Date(now).toISOString().slice(0, 10);
}

/** The days that are shown unless others are asked for. `now` is in Unix milliseconds. */
export function lastDays(now: number): DayRange {
  return { from: toDay(now - (SHOWN_DAYS - 1) * DAY_MS), to: toDay(now) };
}

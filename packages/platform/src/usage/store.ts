import type { Connections, Queries } from '../connections/connections.js';
import { createUsageStatements } from './statements.js';

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
  /** Whose the key was on the day; for several days, whose it is */
  readonly owner: string | null;
  /** For several days, how many requests there were on each of the last SHOWN_DAYS, admitted and denied */
  readonly byDay?: Readonly<Record<string, number>>;
}

/** How often the keys of an owner, or those without one, called an operation. */
export interface OwnerUsage extends Readonly<Counts> {
  readonly owner: string | null;
  readonly operation: string;
}

/** Somebody whose key it was up to a UTC day, included; null for nobody in particular. */
export interface PastOwner {
  readonly owner: string | null;
  readonly until: string;
}

/** Keys of which the usage is read, on those days on which they were an owner's. */
export interface Owned {
  readonly owner: string;
  /** All keys that are the owner's, or were */
  readonly ids: readonly string[];
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
  const sql = createUsageStatements(inSchema);
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
    /** The keys that are an owner's, or were. Their usage may be that of others on other days. */
    async findOwned(owner: string): Promise<Owned> {
      const { rows } = await pool.query<{ id: string }>(sql.findOwned, [owner]);
      return { owner, ids: rows.map(({ id }) => id) };
    },
    /** Those whose the key was, the first one first. */
    async readPastOwners(apiKeyId: string) {
      return (await pool.query<PastOwner>(sql.readPastOwners, [apiKeyId])).rows;
    },
    /** A row for each key and operation: of an owner's keys, or of all. */
    async readKeys({ from, to }: DayRange, owned?: Owned) {
      const { from: firstShown } = lastDays(Date.parse(to));
      const values = [from, to, owned?.ids, firstShown, owned?.owner];
      const { rows } = await pool.query<Stored<KeyUsage>>(sql.readKeys, values);
      return withNumbers(rows);
    },
    /** The calls by owner and operation, of one owner or of all. A day is its owner's, even if another owner has the key by now. */
    async readOwners({ from, to }: DayRange, owned?: Owned) {
      const values = [from, to, owned?.ids, owned?.owner];
      const { rows } = await pool.query<Stored<OwnerUsage>>(sql.readOwners, values);
      return withNumbers(rows);
    },
    /** The days on which an owner's keys, or any, have called something, newest first. */
    async findDays({ from, to }: DayRange, owned?: Owned) {
      const found =
        owned === undefined
          ? pool.query<{ day: string }>(sql.findDays, [from, to])
          : pool.query<{ day: string }>(sql.findDaysOfKeys, [from, to, owned.ids]);
      return (await found).rows.map(({ day }) => day);
    },
    /** The same of one day. All days at once may not fit into memory. */
    async readKeysOnDay(day: string, owned?: Owned) {
      const values = [day, owned?.ids, owned?.owner];
      const { rows } = await pool.query<Stored<KeyUsage>>(sql.readKeysOnDay, values);
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
  const { read } = createUsageStatements(inSchema);
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

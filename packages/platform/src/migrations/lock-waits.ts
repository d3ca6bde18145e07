import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import { readCode } from '../connections/outage.js';
import { OperatorError } from '../operator-errors/operator-error.js';

/**
 * The advisory lock of Prisma's schema engine, so that `prisma migrate deploy` and this runner wait for each other. While Prisma's
 * engine waits, a migration that creates an index concurrently ends as a deadlock: see docs/database.md.
 */
const LOCK = 72_707_369;

/** How often the lock of migrations is tried while another session has it. */
const RETRY_MS = 100;

/** SQLSTATE lock_not_available: of `lock_timeout`. */
const LOCK_NOT_AVAILABLE = '55P03';

/** Who has the lock. Every role may see these two columns of any session. */
const FIND_HOLDER = `
  SELECT pid, application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'advisory' AND (classid, objid, objsubid) = (0, ${LOCK}, 1) AND granted
    AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** Who has had a table or an index for the last $1 milliseconds. Others' transactions are unknown to some roles. */
const FIND_TABLE_HOLDERS = `
  SELECT DISTINCT pid, application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND granted AND pid <> pg_backend_pid()
    AND (xact_start < clock_timestamp() - $1 * interval '1 ms') IS NOT FALSE`;

/** What to do while others have a lock. */
export interface LockWait {
  /** Called with what is waited for, once, while another migration has the lock of migrations */
  readonly onWaiting: (message: string) => void;
  /** After how long. Default 5 s */
  readonly noticeMs?: number;
  /** How long at most. Default 60 s */
  readonly timeoutMs?: number;
  /** How long a migration waits for each lock that it needs, unless it says otherwise. Default 5 s */
  readonly tableMs?: number;
}

/** Takes the lock of migrations until the session ends. */
export async function lock(
  client: pg.Client,
  { onWaiting, noticeMs = 5_000, timeoutMs = 60_000 }: Partial<LockWait> = {},
): Promise<void> {
  if (await lockWithin(client, noticeMs)) return;
  const holder = await describeHolders(client, FIND_HOLDER);
  onWaiting?.(`waiting for another migration to end: ${holder}`);
  if (await lockWithin(client, timeoutMs - noticeMs)) return;
  throw new OperatorError(
    `Another migration has not ended within ${timeoutMs / 1_000} s (${holder}): wait for it, or end that session with pg_terminate_backend, and try again.`,
    { exitCode: 4 },
  );
}

/**
 * Tries again and again. A session that waits in `pg_advisory_lock` has a snapshot, which CREATE INDEX CONCURRENTLY waits for:
 * the session that creates the index has the lock, so the two would be a deadlock.
 */
async function lockWithin(client: pg.Client, timeoutMs: number): Promise<boolean> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const { rows } = await client.query(`SELECT pg_try_advisory_lock(${LOCK}) AS "isLocked"`);
    if (rows[0].isLocked) return true;
    const leftMs = end - performance.now();
    if (leftMs <= 0) return false;
    await setTimeout(Math.min(RETRY_MS, leftMs));
  }
}

/** The sessions that have had tables for so many milliseconds */
export const describeTableHolders = (client: pg.Client, tableMs: number) =>
  describeHolders(client, FIND_TABLE_HOLDERS, [tableMs]);

export const isLockTimeout = (error: unknown) => readCode(error) === LOCK_NOT_AVAILABLE;

async function describeHolders(client: pg.Client, sql: string, values: unknown[] = []): Promise<string> {
  const { rows } = await client.query<{ pid: number; application_name: string }>(sql, values);
  return rows.map((each) => `pid ${each.pid}, "${each.application_name}"`).join('; ') || 'now gone';
}

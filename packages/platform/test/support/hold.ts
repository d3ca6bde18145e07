import type pg from 'pg';
import { expect, onTestFinished } from 'vitest';
import { isDatabaseOutage } from '../../src/connections/outage.js';
import { BEGIN_FOR_LONG } from './begin-for-long.js';

/** Runs SQL in a transaction that stays open until the function that is returned ends it, or the test is over. */
export async function hold(
  pool: pg.Pool,
  sql: string,
): Promise<(how?: 'COMMIT' | 'ROLLBACK') => Promise<void>> {
  const client = await pool.connect();
  await client.query(`${BEGIN_FOR_LONG}; ${sql}`);
  let isOver = false;
  const end = async (how: 'COMMIT' | 'ROLLBACK' = 'ROLLBACK') => {
    if (isOver) return;
    isOver = true;
    await client.query(how);
    client.release();
  };
  onTestFinished(() => end());
  return end;
}

/** Resolves when so many sessions of a database wait for what others have locked. */
export async function untilWaiting(pool: pg.Pool, count: number): Promise<void> {
  const sql = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  await expect.poll(async () => (await pool.query(sql)).rows.length).toBe(count);
}

/** Repeats a call that the database had no time for, as a client does after a 503. */
export async function untilAnswered<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  for (let left = 20; ; left -= 1) {
    try {
      return await call();
    } catch (error) {
      if (left === 0 || !isDatabaseOutage(error)) throw error;
    }
  }
}

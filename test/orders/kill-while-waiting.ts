import { type Caller, createCaller, execute, untilListening } from '@animal-store/platform/testing';
import pg from 'pg';
import { expect, onTestFinished } from 'vitest';
import { run } from '../support/programs.js';
import type { TestService } from '../support/service.js';

/**
 * Calls a process of its own on the database of a service, and kills it while the call waits for what a statement has locked.
 * Returns once nothing of the call goes on in PostgreSQL.
 */
export async function killWhileWaiting(
  { databaseUrl, key }: TestService,
  hold: string,
  send: (killed: Caller) => Promise<{ readonly status: number }>,
): Promise<void> {
  const program = run('main', [], { DATABASE_URL: databaseUrl, APP_ENV: 'staging', PORT: '0' });
  const kill = () => {
    program.child.kill('SIGKILL');
    return program.ended;
  };
  onTestFinished(async () => void (await kill()));
  // Keys of that environment begin alike in all that are not production.
  const killed = createCaller({ url: await untilListening(program), key });
  const holder = new pg.Client(databaseUrl);
  await holder.connect();
  onTestFinished(() => holder.end());
  await holder.query(`BEGIN; ${hold}`);
  const outcome = send(killed).then(
    ({ status }) => status,
    ({ message }: Error) => message,
  );
  const countWaiting = async () => {
    const waiting =
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    return (await execute(databaseUrl, waiting)).length;
  };
  await expect.poll(countWaiting).toBeGreaterThan(0);
  await kill();
  // On a busy machine it may have given up before it was killed.
  expect(['fetch failed', 503]).toContain(await outcome);
  await holder.query('ROLLBACK');
  await expect.poll(countWaiting).toBe(0);
}

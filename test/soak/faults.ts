import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { PostgresServer } from '../../packages/platform/test/support/postgres-server.js';
import { type Callers, changeKey, changeSomeKey } from './callers.js';
import { SALE_IDS } from './catalogue.js';
import { pick, randomInteger, randomOfFaults } from './random.js';

export interface Faults {
  readonly counts: Readonly<Record<Fault, number>>;
  /** Lets PostgreSQL commit again, and makes all keys valid again. */
  stop(): Promise<void>;
}

type Fault = 'cancels' | 'terminations' | 'keyChanges' | 'rowLocks' | 'commitHangs';

/** Between two breaks of a connection or statement */
const BREAK_PAUSE_MS = [100, 300] as const;
/** Between two times that a row is locked or commits hang */
const WAIT_PAUSE_MS = [1_000, 3_000] as const;
/** How long a row is locked or commits hang: less than a statement may take */
const WAIT_MS = 500;

/** Its own connections are not among those that it breaks. */
const NAME = 'faults of the soak';

/** Every other time a backend that is running a statement right now, if there is one. */
const onRandomBackend = (action: string) => `
  SELECT ${action}(pid) FROM (
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND application_name <> '${NAME}'
    ORDER BY $1::boolean AND state = 'active' DESC, random() LIMIT 1
  ) AS backend`;

/**
 * Cancels and terminates random backends, changes random keys, and lets rows and commits wait, until it is stopped. The
 * server has to be the soak's own, because all of its commits hang.
 */
export async function startFaults(server: PostgresServer, callers: Callers): Promise<Faults> {
  const counts = { cancels: 0, terminations: 0, keyChanges: 0, rowLocks: 0, commitHangs: 0 };
  let isStopped = false;
  const repeat = async (
    [min, max]: readonly [number, number],
    act: (client: pg.Client) => Promise<unknown>,
    end: (client: pg.Client) => Promise<unknown> = async () => {},
  ) => {
    const client = new pg.Client({ connectionString: server.url, application_name: NAME });
    await client.connect();
    while (!isStopped) {
      await delay(randomInteger(min, max, randomOfFaults));
      await act(client);
    }
    await end(client);
    await client.end();
  };
  const breakAndChange = async (client: pg.Client) => {
    const [fault, action] = pick(
      [
        ['cancels', 'pg_cancel_backend'],
        ['terminations', 'pg_terminate_backend'],
      ] as const,
      randomOfFaults,
    );
    const { rowCount } = await client.query(onRandomBackend(action), [randomOfFaults() < 0.5]);
    counts[fault] += rowCount ?? 0;
    await changeSomeKey(client, callers);
    counts.keyChanges += 1;
  };
  const running = Promise.all([
    repeat(BREAK_PAUSE_MS, breakAndChange, (client) => makeAllValid(client, callers)),
    repeat(WAIT_PAUSE_MS, async (client) => {
      counts.rowLocks += await lockRow(client);
    }),
    repeat(WAIT_PAUSE_MS, async (client) => {
      await letCommitsHang(client);
      counts.commitHangs += 1;
    }),
  ]);
  return {
    counts,
    async stop() {
      isStopped = true;
      await running;
    },
  };
}

async function makeAllValid(client: pg.Client, { ample }: Callers): Promise<void> {
  for (const caller of ample) {
    if (caller.versions.at(-1)?.isRevoked) await changeKey(client, caller, false);
  }
}

/** Locks an animal for sale or an order that is open, as somebody with a shell does. Resolves with how many rows that were. */
async function lockRow(client: pg.Client): Promise<number> {
  await client.query('BEGIN');
  const { rowCount } =
    randomOfFaults() < 0.5
      ? await client.query('SELECT FROM pets WHERE id = $1 FOR UPDATE', [pick(SALE_IDS, randomOfFaults)])
      : await client.query("SELECT FROM orders WHERE status = 'placed' ORDER BY id DESC LIMIT 1 FOR UPDATE");
  await delay(WAIT_MS);
  await client.query('ROLLBACK');
  return rowCount ?? 0;
}

/** Nobody by this name ever acknowledges a commit. */
async function letCommitsHang(client: pg.Client): Promise<void> {
  await client.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  await client.query('SELECT pg_reload_conf()');
  await delay(WAIT_MS);
  await client.query('ALTER SYSTEM RESET synchronous_standby_names');
  await client.query('SELECT pg_reload_conf()');
}

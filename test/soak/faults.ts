import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { randomInteger } from './random.js';

export interface Faults {
  readonly cancels: number;
  readonly terminations: number;
  stop(): Promise<void>;
}

const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 300;

/** Every other time a backend that is running a statement right now, if there is one. */
const onRandomBackend = (action: string) => `
  SELECT ${action}(pid) FROM (
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
    ORDER BY $1::boolean AND state = 'active' DESC, random() LIMIT 1
  ) AS backend`;

/** Cancels and terminates random backends of a database until it is stopped. */
export async function startFaults(databaseUrl: string): Promise<Faults> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const counts = { pg_cancel_backend: 0, pg_terminate_backend: 0 };
  let isStopped = false;
  const run = async () => {
    while (!isStopped) {
      await delay(randomInteger(MIN_PAUSE_MS, MAX_PAUSE_MS));
      const action = Math.random() < 0.5 ? 'pg_cancel_backend' : 'pg_terminate_backend';
      const { rowCount } = await client.query(onRandomBackend(action), [Math.random() < 0.5]);
      counts[action] += rowCount ?? 0;
    }
  };
  const running = run();
  return {
    get cancels() {
      return counts.pg_cancel_backend;
    },
    get terminations() {
      return counts.pg_terminate_backend;
    },
    async stop() {
      isStopped = true;
      await running.finally(() => client.end());
    },
  };
}

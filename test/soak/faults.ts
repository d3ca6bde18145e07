import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Callers, changeKey, changeSomeKey } from './callers.js';
import { randomInteger, randomOfFaults } from './random.js';

export interface Faults {
  readonly cancels: number;
  readonly terminations: number;
  readonly keyChanges: number;
  /** Makes all keys valid again. */
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

/** Cancels and terminates random backends of a database, and changes random keys, until it is stopped. */
export async function startFaults(databaseUrl: string, callers: Callers): Promise<Faults> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const counts = { pg_cancel_backend: 0, pg_terminate_backend: 0 };
  let keyChanges = 0;
  let isStopped = false;
  const run = async () => {
    while (!isStopped) {
      await delay(randomInteger(MIN_PAUSE_MS, MAX_PAUSE_MS, randomOfFaults));
      const action = randomOfFaults() < 0.5 ? 'pg_cancel_backend' : 'pg_terminate_backend';
      const { rowCount } = await client.query(onRandomBackend(action), [randomOfFaults() < 0.5]);
      counts[action] += rowCount ?? 0;
      await changeSomeKey(client, callers);
      keyChanges += 1;
    }
    for (const caller of callers.ample) {
      if (caller.versions.at(-1)?.isRevoked) await changeKey(client, caller, false);
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
    get keyChanges() {
      return keyChanges;
    },
    async stop() {
      isStopped = true;
      await running.finally(() => client.end());
    },
  };
}

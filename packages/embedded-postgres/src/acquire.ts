import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './cluster.js';
import { EmbeddedError } from './error.js';
import { type Guard, lookBehind, type Role, takeLocks } from './lock-connection.js';
import { lastWords, readLockFile, removeLockFile, SERVER_SECONDS, startServer } from './server.js';

// How long each obstacle may last, in milliseconds. A server needs a moment to notice that the service that held it was
// killed; orphans of a killed server hold its shared memory until they notice.
const PATIENCE = { taken: 2000, failed: 10_000, busy: SERVER_SECONDS * 1000 };

// A server listens as soon as it has written its lock file; a process that does not after this long is another one.
const DEAF_MS = 500;

interface Obstacle {
  readonly kind: keyof typeof PATIENCE;
  readonly message: string;
}

/** A guard that holds the server, and the port on which that listens. */
export interface Entry {
  readonly guard: Guard;
  readonly port: number;
}

interface Wish {
  readonly cluster: Cluster;
  readonly role: Role;
  /** the only port that will do; without it any */
  readonly port?: number;
  readonly signal?: AbortSignal;
}

/**
 * Joins those who hold the cluster's server, starting it when none runs. Other processes may start and stop it at the
 * same time; PostgreSQL's own lock file and shared memory see to it that at most one server has the files.
 *
 * @throws EmbeddedError when another service holds it or PostgreSQL does not start; an AbortError on the signal.
 */
export async function enter(wish: Wish): Promise<Entry> {
  const firstSeen = new Map<string, number>();
  const lasting = (what: string): number => {
    const since = firstSeen.get(what) ?? Date.now();
    firstSeen.set(what, since);
    return Date.now() - since;
  };
  for (let pause = 10; ; pause = Math.min(pause * 2, 500)) {
    wish.signal?.throwIfAborted();
    const result = await tryOnce(wish, lasting);
    if ('guard' in result) return result;
    if (lasting(result.kind) > PATIENCE[result.kind]) throw new EmbeddedError(result.message);
    await sleep(pause, undefined, wish.signal && { signal: wish.signal });
  }
}

async function tryOnce(wish: Wish, lasting: (what: string) => number): Promise<Entry | Obstacle> {
  const { cluster, port } = wish;
  const lock = await readLockFile(cluster);
  const found = lock ? await lookBehind(lock.port, cluster) : 'absent';
  if (found === 'busy') return busy(cluster);
  if (lock && typeof found === 'object' && 'client' in found) return join(found, lock.port, wish);
  try {
    await startServer(cluster, port);
    return busy(cluster);
  } catch (error) {
    // Only the process number in the lock file keeps PostgreSQL from starting, and it can be anybody's by now. A server
    // that does live still holds its shared memory, so that no second one starts on its files.
    if (lock && found === 'absent' && lasting(lock.run) > DEAF_MS) await removeLockFile(cluster, lock);
    return failed(cluster, found instanceof Error ? found : error);
  }
}

async function join(
  guard: Guard,
  port: number,
  { cluster, role, port: wanted = port }: Wish,
): Promise<Entry | Obstacle> {
  try {
    const answer = port === wanted ? await takeLocks(guard, role) : 'elsewhere';
    if (answer === 'held') return { guard, port };
    await guard.client.end();
    if (answer === 'refused') return taken(cluster);
    return answer === 'stopping'
      ? busy(cluster)
      : failed(cluster, new Error(`it listens on port ${port} instead of ${wanted}`));
  } catch {
    // The connection broke or stalled; left open it could hold the locks against the next attempt.
    guard.client.end().catch(() => {});
    return busy(cluster);
  }
}

function taken({ dataDir }: Cluster): Obstacle {
  const message = `Another service is running on DATA_DIR ${dataDir}: stop it, or give this one a DATA_DIR of its own.`;
  return { kind: 'taken', message };
}

function busy({ folder }: Cluster): Obstacle {
  const message = `PostgreSQL in ${folder} has neither come up nor gone for ${SERVER_SECONDS} s: see server.log there.`;
  return { kind: 'busy', message };
}

async function failed(cluster: Cluster, error: unknown): Promise<Obstacle> {
  const reason = error instanceof Error ? error.message : error;
  const log = await lastWords(cluster);
  const message = `PostgreSQL in ${cluster.folder} cannot be used (${reason}): see server.log there, which ends: ${log}`;
  return { kind: 'failed', message };
}

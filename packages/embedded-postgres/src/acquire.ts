import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './database-cluster.js';
import { EmbeddedPostgresError, findRemedy, toMessage } from './error.js';
import { LockConnection, type Mode } from './lock-connection.js';
import { readLockFile, removeLockFile, SERVER_TIMEOUT_S, startServer } from './server.js';

/**
 * How long each reason may last before `acquire` gives up. The server takes a moment to notice that the process that used
 * it was killed, and the orphans of a killed server keep its shared memory until they notice. Waiting does not help
 * against a full or read-only file system.
 */
const PATIENCE_MS = { inUse: 2000, failed: 10_000, fileSystem: 0, busy: SERVER_TIMEOUT_S * 1000 };

/** A server listens right after writing its lock file, so a process that does not listen after this time is not a server. */
const STALE_LOCK_FILE_MS = 500;

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;

/** Why an attempt did not succeed. */
interface Blocked {
  readonly reason: keyof typeof PATIENCE_MS;
  readonly error: EmbeddedPostgresError;
}

export interface AcquireOptions {
  readonly cluster: Cluster;
  readonly mode: Mode;
  /** The only acceptable port; undefined: any */
  readonly port?: number;
  readonly signal?: AbortSignal;
}

/** For how many milliseconds a condition has lasted. */
type DurationOf = (what: string) => number;

/**
 * Connects to the cluster's server and takes the locks, starting the server when none runs. Other processes may start
 * and stop it at the same time: PostgreSQL's lock file and shared memory ensure that at most one server has the files.
 *
 * @throws EmbeddedPostgresError when the data directory is in use or PostgreSQL does not start; AbortError when aborted
 */
export async function acquire(options: AcquireOptions): Promise<LockConnection> {
  const { signal } = options;
  const firstSeen = new Map<string, number>();
  const durationOf = (what: string): number => {
    const since = firstSeen.get(what) ?? Date.now();
    firstSeen.set(what, since);
    return Date.now() - since;
  };
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    signal?.throwIfAborted();
    const result = await tryAcquire(options, durationOf);
    if (result instanceof LockConnection) return result;
    if (durationOf(result.reason) > PATIENCE_MS[result.reason]) throw result.error;
    await sleep(pauseMs, undefined, { signal });
  }
}

async function tryAcquire(
  options: AcquireOptions,
  durationOf: DurationOf,
): Promise<LockConnection | Blocked> {
  const { cluster, port } = options;
  const lockFile = await readLockFile(cluster);
  const found = await LockConnection.open(cluster, lockFile?.port);
  if (found instanceof LockConnection) return tryLock(found, options);
  if (found === 'busy') return busy(cluster);
  try {
    await startServer(cluster, port);
    return busy(cluster);
  } catch (error) {
    // Nobody listens, so only the process number in the lock file can keep PostgreSQL from starting, and that number may belong
    // to any process by now. If a server is alive after all, its shared memory keeps a second server away from its files.
    if (lockFile && found === 'absent' && durationOf(lockFile.instance) > STALE_LOCK_FILE_MS) {
      await removeLockFile(cluster, lockFile);
    }
    return failed(cluster, found instanceof Error ? found : error);
  }
}

async function tryLock(
  connection: LockConnection,
  { cluster, mode, port = connection.port }: AcquireOptions,
): Promise<LockConnection | Blocked> {
  try {
    const result = connection.port === port ? await connection.lock(mode) : 'other-port';
    if (result === 'locked') return connection;
    const pid = result === 'in-use' ? await connection.findExclusive() : undefined;
    await connection.close();
    if (result === 'in-use') return inUse(cluster, pid);
    if (result === 'stopping') return busy(cluster);
    return failed(cluster, new Error(`it listens on port ${connection.port} instead of ${port}`));
  } catch {
    // The connection broke or stalled. Left open it could keep its locks from the next attempt.
    void connection.close();
    return busy(cluster);
  }
}

function inUse({ dataDir }: Cluster, pid: number | undefined): Blocked {
  const process = pid === undefined ? 'Another process' : `Another process (pid ${pid})`;
  const message = `${process} has opened ${dataDir} in exclusive mode: stop it or choose another data directory.`;
  return { reason: 'inUse', error: new EmbeddedPostgresError('IN_USE', message, { pid }) };
}

function busy({ directory }: Cluster): Blocked {
  const message = `PostgreSQL in ${directory} has been starting or stopping for ${SERVER_TIMEOUT_S} s: see server.log there.`;
  return { reason: 'busy', error: new EmbeddedPostgresError('SERVER_FAILED', message) };
}

function failed({ directory }: Cluster, cause: unknown): Blocked {
  const remedy = findRemedy(cause);
  const message = `PostgreSQL in ${directory} cannot be used (${toMessage(cause)}): ${remedy ?? 'see server.log there'}.`;
  const error = new EmbeddedPostgresError('SERVER_FAILED', message, { cause });
  return { reason: remedy === undefined ? 'failed' : 'fileSystem', error };
}

import { randomInt } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { kill } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from './account.js';
import type { Cluster } from './cluster.js';
import { EmbeddedError } from './error.js';

const LOCK_FILE = 'data/postmaster.pid';

/** The longest that PostgreSQL may take to start (it may have to replay its log first) or to stop. */
export const SERVER_SECONDS = 60;

/** What `postmaster.pid` says: there while a server runs, and after one that was killed. */
export interface LockFile {
  /** which run of the server wrote it: process number, folder and time */
  readonly run: string;
  readonly pid: number;
  readonly port: number;
}

/**
 * Reads the server's lock file; undefined when there is none. Its lines:
 * https://github.com/postgres/postgres/blob/REL_18_STABLE/src/include/utils/pidfile.h
 */
export async function readLockFile(cluster: Cluster): Promise<LockFile | undefined> {
  const lines = (await read(cluster, LOCK_FILE))?.split('\n');
  return lines && { run: lines.slice(0, 3).join('\n'), pid: Number(lines[0]), port: Number(lines[3]) };
}

/** Removes a lock file whose process is no server of this cluster, unless it is another one by now. */
export async function removeLockFile(cluster: Cluster, stale: LockFile): Promise<void> {
  const current = await readLockFile(cluster);
  if (current?.run === stale.run) await rm(join(cluster.folder, LOCK_FILE), { force: true });
}

/**
 * Starts PostgreSQL in a session of its own, where a Ctrl-C in the terminal does not reach it, and waits until it
 * accepts connections. Without a port it takes the one it had before when that is free, else another.
 *
 * @throws EmbeddedError when it does not start.
 */
export async function startServer(cluster: Cluster, port?: number): Promise<void> {
  const chosen = port ?? (await choosePort(cluster));
  // What keeps others out stands here, where an edited postgresql.conf cannot change it.
  const options = `-p ${chosen} -c listen_addresses=127.0.0.1 -c unix_socket_directories=`;
  await control(cluster, ['start', '-w', '-t', String(SERVER_SECONDS), '-l', 'server.log', '-o', options]);
}

/**
 * Stops PostgreSQL, ending what is still connected, with everything written.
 *
 * @throws EmbeddedError when it does not stop in time.
 */
export async function stopServer(cluster: Cluster): Promise<void> {
  const stopping = await readLockFile(cluster);
  // pg_ctl's own wait would go on to the end of a server that another process starts right after this one.
  await control(cluster, ['stop', '-m', 'fast', '-W']);
  const until = Date.now() + SERVER_SECONDS * 1000;
  while (stopping && isAlive(stopping.pid) && (await readLockFile(cluster))?.run === stopping.run) {
    if (Date.now() > until) throw new EmbeddedError(`it is still stopping after ${SERVER_SECONDS} s.`);
    await sleep(10);
  }
}

/** The last lines of the server's log, on one line. */
export async function lastWords(cluster: Cluster): Promise<string> {
  const log = (await read(cluster, 'server.log')) ?? '';
  return log.trim().split('\n').slice(-3).join(' | ');
}

// Relative paths, because pg_ctl hands them to a shell.
function control({ account, binaries, folder }: Cluster, args: string[]): Promise<string> {
  return run(binaries.pgCtl, [...args, '-s', '-D', 'data'], { account, cwd: folder });
}

function isAlive(pid: number): boolean {
  try {
    return kill(pid, 0);
  } catch {
    return false;
  }
}

async function choosePort(cluster: Cluster): Promise<number> {
  // PostgreSQL notes the options of a start that worked.
  const options = await read(cluster, 'data/postmaster.opts');
  const previous = Number(options?.match(/"-p" "(\d+)"/)?.[1]);
  if (previous && (await isFree(previous))) return previous;
  // Below the range from which systems take ports for outgoing connections, so that it is still free after a restart.
  for (;;) {
    const port = randomInt(20_000, 30_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}

async function read({ folder }: Cluster, name: string): Promise<string | undefined> {
  return readFile(join(folder, name), 'utf8').catch(() => undefined);
}

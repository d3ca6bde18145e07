import { randomInt } from 'node:crypto';
import { readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { kill } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from './account.js';
import type { Cluster } from './database-cluster.js';
import { findErrorLine } from './error.js';

const LOCK_FILE = 'data/postmaster.pid';
const LOG_FILE = 'server.log';

/** How long PostgreSQL may take to stop, or to start, for which it may have to replay its write-ahead log. */
export const SERVER_TIMEOUT_S = 60;
const STOP_POLL_MS = 10;

/**
 * New clusters get a port below the range that systems use for outgoing connections, so that it is likely to be free
 * after a restart.
 */
const FIRST_PORT = 20_000;
const END_PORT = 30_000;

/** The content of `postmaster.pid`, which exists while a server runs and after one was killed. */
export interface LockFile {
  /** Identifies the server process that wrote it: process number, directory and time */
  readonly instance: string;
  readonly pid: number;
  readonly port: number;
}

/** The lines of the file: https://github.com/postgres/postgres/blob/REL_18_STABLE/src/include/utils/pidfile.h */
export async function readLockFile(cluster: Cluster): Promise<LockFile | undefined> {
  const lines = (await read(cluster, LOCK_FILE))?.split('\n');
  return lines && { instance: lines.slice(0, 3).join('\n'), pid: Number(lines[0]), port: Number(lines[3]) };
}

/** Removes a stale lock file, unless a server has replaced it. */
export async function removeLockFile(cluster: Cluster, stale: LockFile): Promise<void> {
  const current = await readLockFile(cluster);
  if (current?.instance === stale.instance) await rm(join(cluster.directory, LOCK_FILE), { force: true });
}

/**
 * Starts PostgreSQL and waits until it accepts connections. pg_ctl puts it into a session of its own, where a Ctrl-C in
 * the terminal does not reach it. Without a port, PostgreSQL gets its previous port if that is free, else another.
 */
export async function startServer(cluster: Cluster, port?: number): Promise<void> {
  const chosen = port ?? (await choosePort(cluster));
  // These settings keep others out, so they are set here, where an edited postgresql.conf cannot change them.
  const options = `-p ${chosen} -c listen_addresses=127.0.0.1 -c unix_socket_directories=`;
  const logFile = join(cluster.directory, LOG_FILE);
  const { size = 0 } = (await stat(logFile).catch(() => undefined)) ?? {};
  try {
    await control(cluster, ['start', '-w', '-t', String(SERVER_TIMEOUT_S), '-l', LOG_FILE, '-o', options]);
  } catch (cause) {
    // The server's own log says more than pg_ctl.
    const logged = await readFile(logFile).then(
      (log) => log.subarray(size).toString(),
      () => '',
    );
    throw logged ? new Error(findErrorLine(logged), { cause }) : cause;
  }
}

/** Stops PostgreSQL after everything committed is written; connections that are still open end. */
export async function stopServer(cluster: Cluster): Promise<void> {
  const stopping = await readLockFile(cluster);
  // If another process starts a server right after this one, pg_ctl's own wait would wait for that server to stop, too.
  await control(cluster, ['stop', '-m', 'fast', '-W']);
  const deadline = Date.now() + SERVER_TIMEOUT_S * 1000;
  while (stopping && isAlive(stopping.pid) && (await readLockFile(cluster))?.instance === stopping.instance) {
    if (Date.now() > deadline) throw new Error(`it is still running after ${SERVER_TIMEOUT_S} s`);
    await sleep(STOP_POLL_MS);
  }
}

// Paths are relative because pg_ctl passes them to a shell.
function control({ account, binaries, directory }: Cluster, args: string[]): Promise<string> {
  return run(binaries.pgCtl, [...args, '-s', '-D', 'data'], { account, cwd: directory });
}

function isAlive(pid: number): boolean {
  try {
    return kill(pid, 0);
  } catch {
    return false;
  }
}

async function choosePort(cluster: Cluster): Promise<number> {
  // PostgreSQL saves the options of its last successful start.
  const options = await read(cluster, 'data/postmaster.opts');
  const previous = Number(options?.match(/"-p" "(\d+)"/)?.[1]);
  if (previous && (await isFree(previous))) return previous;
  for (;;) {
    const port = randomInt(FIRST_PORT, END_PORT);
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

async function read({ directory }: Cluster, name: string): Promise<string | undefined> {
  return readFile(join(directory, name), 'utf8').catch(() => undefined);
}

import { setTimeout as sleep } from 'node:timers/promises';
import { acquire } from './acquire.js';
import type { Cluster } from './database-cluster.js';
import { EmbeddedPostgresError, toMessage } from './error.js';
import { type ConnectResult, LockConnection, type Mode } from './lock-connection.js';
import { readLockFile, stopServer } from './server.js';

/** The pause between attempts to restart PostgreSQL, each of which takes seconds itself. */
const RECOVERY_PAUSE_MS = 2000;

/** How long a release waits for a server that was starting or stopping when this process lost its connection. */
const RELEASE_TIMEOUT_MS = 5000;
const RELEASE_PAUSE_MS = 20;

interface LeaseOptions {
  readonly cluster: Cluster;
  readonly mode: Mode;
  readonly log: (message: string) => void;
  readonly onError: (error: Error) => void;
}

/** Keeps the server running on the same port until it is released. */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #port: number;
  readonly #released = new AbortController();
  #connection: LockConnection | undefined;
  #recovery: Promise<void> = Promise.resolve();
  #release: Promise<void> | undefined;

  constructor(connection: LockConnection, options: LeaseOptions) {
    this.#options = options;
    this.#port = connection.port;
    this.#watch(connection);
  }

  /** Gives up the lease and stops the server when no other process has one. Never rejects. */
  release(): Promise<void> {
    this.#release ??= this.#giveUp();
    return this.#release;
  }

  #watch(connection: LockConnection): void {
    this.#connection = connection;
    void connection.closed.then(() => {
      if (this.#released.signal.aborted) return;
      this.#connection = undefined;
      this.#recovery = this.#recover();
    });
  }

  async #recover(): Promise<void> {
    const { cluster, mode, log, onError } = this.#options;
    const { signal } = this.#released;
    const lost = `The connection to PostgreSQL in ${cluster.directory} broke: reconnecting.`;
    onError(new EmbeddedPostgresError('SERVER_FAILED', lost));
    while (!signal.aborted) {
      try {
        this.#watch(await acquire({ cluster, mode, port: this.#port, signal }));
        return log('PostgreSQL is back.');
      } catch (error) {
        if (signal.aborted) return;
        onError(error instanceof Error ? error : new Error(String(error)));
        await sleep(RECOVERY_PAUSE_MS, undefined, { signal }).catch(() => {});
      }
    }
  }

  async #giveUp(): Promise<void> {
    this.#released.abort();
    await this.#recovery;
    const deadline = Date.now() + RELEASE_TIMEOUT_MS;
    let found = this.#connection ?? (await this.#connect());
    while (found !== 'absent' && !(found instanceof Error) && Date.now() < deadline) {
      if (found !== 'busy' && (await this.#stopIfLast(found))) return;
      await sleep(RELEASE_PAUSE_MS);
      found = await this.#connect();
    }
  }

  async #connect(): Promise<ConnectResult> {
    const { cluster } = this.#options;
    return LockConnection.open(cluster, (await readLockFile(cluster))?.port);
  }

  /** Returns false when the connection broke before it was known whether others need the server. */
  async #stopIfLast(connection: LockConnection): Promise<boolean> {
    const { cluster, log } = this.#options;
    const isLast = await connection.unlock().catch(() => undefined);
    if (isLast) {
      await stopServer(cluster).catch((error) => log(`PostgreSQL was not stopped: ${toMessage(error)}`));
    }
    await connection.close();
    return isLast !== undefined;
  }
}

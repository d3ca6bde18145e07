import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './cluster.js';
import { type Entry, enter } from './acquire.js';
import { EmbeddedError } from './error.js';
import { type Found, type Guard, giveUpLocks, lookBehind, type Role } from './lock-connection.js';
import { readLockFile, stopServer } from './server.js';

// Between attempts to bring PostgreSQL back, each of which has tried for seconds itself.
const RECOVERY_PAUSE_MS = 2000;
// How long a release waits for a server that was on its way up or down when this process lost it.
const FAREWELL_MS = 5000;

interface HoldOptions {
  readonly cluster: Cluster;
  readonly role: Role;
  readonly log: (message: string) => void;
  readonly onFault: (error: Error) => void;
}

/** Keeps the server running on the port of the first entry until it is released. */
export class Hold {
  readonly #options: HoldOptions;
  readonly #port: number;
  readonly #released = new AbortController();
  #guard: Guard | undefined;
  #recovery: Promise<void> = Promise.resolve();
  #leaving: Promise<void> | undefined;

  constructor({ guard, port }: Entry, options: HoldOptions) {
    this.#options = options;
    this.#port = port;
    this.#watch(guard);
  }

  /** Gives up the hold and stops the server when nobody else holds it. Never rejects. */
  release(): Promise<void> {
    this.#leaving ??= this.#leave();
    return this.#leaving;
  }

  #watch(guard: Guard): void {
    this.#guard = guard;
    guard.gone.then(() => {
      if (this.#released.signal.aborted) return;
      this.#guard = undefined;
      this.#recovery = this.#recover();
    });
  }

  async #recover(): Promise<void> {
    const { cluster, role, log, onFault } = this.#options;
    const { signal } = this.#released;
    onFault(new EmbeddedError(`The connection to PostgreSQL in ${cluster.folder} broke: bringing it back.`));
    while (!signal.aborted) {
      try {
        const { guard } = await enter({ cluster, role, port: this.#port, signal });
        this.#watch(guard);
        return log('PostgreSQL is back.');
      } catch (error) {
        if (signal.aborted) return;
        onFault(error instanceof Error ? error : new EmbeddedError(String(error)));
        await sleep(RECOVERY_PAUSE_MS, undefined, { signal }).catch(() => {});
      }
    }
  }

  async #leave(): Promise<void> {
    this.#released.abort();
    await this.#recovery;
    const until = Date.now() + FAREWELL_MS;
    for (let found: Found = this.#guard ?? 'busy'; Date.now() < until; found = await this.#look()) {
      if (found === 'absent' || found instanceof Error) return;
      if (found === 'busy') await sleep(20);
      else if (await this.#letGo(found)) return;
    }
  }

  async #look(): Promise<Found> {
    const { cluster } = this.#options;
    const lock = await readLockFile(cluster);
    return lock ? lookBehind(lock.port, cluster) : 'absent';
  }

  /** False when the connection broke before it was known whether others hold the server. */
  async #letGo(guard: Guard): Promise<boolean> {
    const { cluster, log } = this.#options;
    const last = await giveUpLocks(guard).catch(() => undefined);
    if (last)
      await stopServer(cluster).catch((error: Error) => log(`PostgreSQL was not stopped: ${error.message}`));
    await guard.client.end().catch(() => {});
    return last !== undefined;
  }
}

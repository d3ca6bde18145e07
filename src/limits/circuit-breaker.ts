import { OperatorError } from '../operator-error.js';
import { REDIS_TIMEOUT_MS, TimeoutTimer } from '../timeouts.js';
import type { Client } from './redis-client.js';

/** The part of pino's logger that is used here. */
export interface Log {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
}

const probeMs = 500;

/** After so many probes in vain on a standing connection, the connection itself is suspected. */
const probesPerConnection = 4;

/** Made once: a stack per refused command would cost more than the decision in memory. */
const away = new Error('Redis is away');

/**
 * A circuit breaker around Redis. The first command that fails, or is not answered in time, opens it: from then on
 * every command is rejected at once, so that no request waits, until a probe in the background has succeeded.
 */
export class RedisLink {
  readonly #client: Client;
  readonly #probe: (client: Client, key: string) => Promise<unknown>;
  readonly #log: Log;
  readonly #timeouts = new TimeoutTimer({
    timeoutMs: REDIS_TIMEOUT_MS,
    tickMs: REDIS_TIMEOUT_MS / 4,
    createError: () => new Error(`No answer within ${REDIS_TIMEOUT_MS} ms`),
  });
  #up = false;
  #closed = false;
  #recoveries = 0;
  #probes = 0;
  #suspectKey: string;
  #reason = '';
  #timer: NodeJS.Timeout | undefined;

  /**
   * `probe` is tried until it succeeds, with a key in the slot of the key that failed; it should do what the
   * commands do, so that a server that answers but does not take writes counts as away.
   */
  constructor(
    client: Client,
    firstKey: string,
    probe: (client: Client, key: string) => Promise<unknown>,
    log: Log,
  ) {
    this.#client = client;
    this.#suspectKey = firstKey;
    this.#probe = probe;
    this.#log = log;
    client.on('error', (error: Error) => {
      this.#reason = error.message;
    });
    client.on('ready', () => this.#probeNow());
    client.on('close', () => this.#lose(new Error('The connection was closed'), this.#suspectKey));
    this.#probeSoon();
  }

  get up(): boolean {
    return this.#up;
  }

  /** How often Redis came back, its first appearance included. What was learnt before may be lost there. */
  get recoveries(): number {
    return this.#recoveries;
  }

  /** Runs a command on a key. Rejects within 160 ms when it cannot be done, at once while Redis is known to be away. */
  async run<T>(key: string, command: (client: Client) => Promise<T>): Promise<T> {
    if (!this.#up) throw away;
    try {
      return await this.#timeouts.race(command(this.#client));
    } catch (error) {
      this.#lose(error, key);
      throw error;
    }
  }

  /** Resolves when Redis can be used; rejects with an Error for the operator when it cannot within `withinMs`. */
  async ready(withinMs: number): Promise<void> {
    const lastMs = Date.now() + withinMs;
    while (!this.#up) {
      if (this.#closed || Date.now() > lastMs)
        throw new OperatorError(
          `Redis cannot be used (${this.#reason}), and limits are kept there: see that it runs and that REDIS_URL leads to it.`,
        );
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  close(): void {
    this.#closed = true;
    this.#up = false;
    clearTimeout(this.#timer);
    this.#timeouts.rejectAll(away);
    this.#client.disconnect();
  }

  #lose(error: unknown, key: string): void {
    if (!this.#up) return;
    this.#up = false;
    this.#suspectKey = key;
    this.#probes = 0;
    this.#warn(error);
    this.#timeouts.rejectAll(away);
    this.#probeSoon();
  }

  #probeSoon(): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#probeNow(), probeMs).unref();
  }

  async #probeNow(): Promise<void> {
    if (this.#up || this.#closed) return;
    try {
      await this.#timeouts.race(this.#probe(this.#client, this.#suspectKey));
      this.#recover();
    } catch (error) {
      this.#stayAway(error);
    }
  }

  #recover(): void {
    if (this.#up || this.#closed) return;
    this.#up = true;
    this.#recoveries += 1;
    this.#reason = '';
    clearTimeout(this.#timer);
    this.#log.info({}, 'Limits are counted in Redis');
  }

  #stayAway(error: unknown): void {
    if (this.#up || this.#closed) return;
    this.#probes += 1;
    // A service that starts without Redis has lost nothing that would have been told of.
    if (this.#recoveries === 0 && this.#probes === 1) this.#warn(error);
    const connected = this.#client.status === 'ready' || this.#client.status === 'connect';
    if (connected && this.#probes % probesPerConnection === 0) this.#client.disconnect(true);
    this.#probeSoon();
  }

  /** The reason only: an error of ioredis carries the command with its arguments, a password among them. */
  #warn(error: unknown): void {
    this.#reason ||= error instanceof Error ? error.message : String(error);
    this.#log.warn({ reason: this.#reason }, 'Redis cannot be used: limits are counted in memory');
  }
}

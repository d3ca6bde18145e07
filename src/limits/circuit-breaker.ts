import { OperatorError } from '../operator-error.js';
import { REDIS_TIMEOUT_MS, TimeoutTimer } from '../timeouts.js';
import type { RedisClient } from './redis-client.js';

/** The part of pino's logger that is used here. */
export interface Log {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
}

const PROBE_INTERVAL_MS = 500;
/** After this many failed probes on an open connection, the connection itself is replaced. */
const MAX_PROBES_PER_CONNECTION = 4;
const READY_POLL_INTERVAL_MS = 20;

/** Created once: capturing a stack for every rejected command would cost more than deciding in memory. */
const OPEN_ERROR = new Error('Redis is unavailable');

export interface CircuitBreakerOptions {
  readonly client: RedisClient;
  /**
   * Repeated until it succeeds, on a key in the slot of the key that failed. It should do what the commands do, so that
   * a server that responds but rejects writes counts as failed.
   */
  readonly probe: (client: RedisClient, key: string) => Promise<unknown>;
  /** The key of the first probe */
  readonly probeKey: string;
  readonly log: Log;
}

/**
 * A circuit breaker around Redis (https://martinfowler.com/bliki/CircuitBreaker.html). The first command that fails or
 * times out opens it: from then on commands are rejected at once, so that no request waits, until a probe in the
 * background succeeds and closes it again.
 */
export class CircuitBreaker {
  readonly #client: RedisClient;
  readonly #probe: CircuitBreakerOptions['probe'];
  readonly #log: Log;
  readonly #timeouts = new TimeoutTimer({
    timeoutMs: REDIS_TIMEOUT_MS,
    tickMs: REDIS_TIMEOUT_MS / 4,
    createError: () => new Error(`No answer within ${REDIS_TIMEOUT_MS} ms`),
  });
  #state: 'open' | 'closed' | 'disposed' = 'open';
  #epoch = 0;
  #failedProbes = 0;
  #probeKey: string;
  #reason = '';
  #timer: NodeJS.Timeout | undefined;

  constructor({ client, probe, probeKey, log }: CircuitBreakerOptions) {
    this.#client = client;
    this.#probe = probe;
    this.#probeKey = probeKey;
    this.#log = log;
    client.on('error', (error: Error) => {
      this.#reason = error.message;
    });
    client.on('ready', () => this.#tryProbe());
    client.on('close', () => this.#open(new Error('The connection was closed'), this.#probeKey));
    this.#scheduleProbe();
  }

  /** Whether commands go through. */
  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** How often the breaker has closed. Counts that were written in an earlier epoch may have been lost since. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Runs a command on a key. Rejects within REDIS_TIMEOUT_MS when Redis fails, at once while the breaker is open. */
  async run<T>(key: string, command: (client: RedisClient) => Promise<T>): Promise<T> {
    if (this.#state !== 'closed') throw OPEN_ERROR;
    try {
      return await this.#timeouts.race(command(this.#client));
    } catch (error) {
      this.#open(error, key);
      throw error;
    }
  }

  /** Resolves when the breaker is closed. @throws OperatorError when it is still open after `withinMs` */
  async ready(withinMs: number): Promise<void> {
    const deadline = Date.now() + withinMs;
    while (this.#state !== 'closed') {
      if (this.#state === 'disposed' || Date.now() > deadline) {
        throw new OperatorError(
          `Redis cannot be used (${this.#reason}), and limits are counted there: check that it is running and that REDIS_URL points to it.`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, READY_POLL_INTERVAL_MS));
    }
  }

  /** Ends the connection for good. */
  dispose(): void {
    this.#state = 'disposed';
    clearTimeout(this.#timer);
    this.#timeouts.rejectAll(OPEN_ERROR);
    this.#client.disconnect();
  }

  #open(error: unknown, key: string): void {
    if (this.#state !== 'closed') return;
    this.#state = 'open';
    this.#probeKey = key;
    this.#failedProbes = 0;
    this.#warn(error);
    this.#timeouts.rejectAll(OPEN_ERROR);
    this.#scheduleProbe();
  }

  #close(): void {
    if (this.#state !== 'open') return;
    this.#state = 'closed';
    this.#epoch += 1;
    this.#reason = '';
    clearTimeout(this.#timer);
    this.#log.info({}, 'Limits are counted in Redis');
  }

  #scheduleProbe(): void {
    if (this.#state !== 'open') return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tryProbe(), PROBE_INTERVAL_MS).unref();
  }

  /** The half-open state: one command goes through, and decides. */
  async #tryProbe(): Promise<void> {
    if (this.#state !== 'open') return;
    try {
      await this.#timeouts.race(this.#probe(this.#client, this.#probeKey));
      this.#close();
    } catch (error) {
      this.#keepOpen(error);
    }
  }

  #keepOpen(error: unknown): void {
    if (this.#state !== 'open') return;
    this.#failedProbes += 1;
    // When the service starts without Redis, no failed command has logged this yet.
    if (this.#epoch === 0 && this.#failedProbes === 1) this.#warn(error);
    const isConnected = this.#client.status === 'ready' || this.#client.status === 'connect';
    if (isConnected && this.#failedProbes % MAX_PROBES_PER_CONNECTION === 0) this.#client.disconnect(true);
    this.#scheduleProbe();
  }

  /** Logs the message only: an error of ioredis carries the command with its arguments, such as a password. */
  #warn(error: unknown): void {
    this.#reason ||= error instanceof Error ? error.message : String(error);
    this.#log.warn({ reason: this.#reason }, 'Redis cannot be used: limits are counted in memory');
  }
}

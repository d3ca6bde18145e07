import { withTimeout } from '@animal-store/batch-loader';

/** The part of pino's logger that is used here, which `console` has, too. */
export interface Log {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
}

const TRIAL_INTERVAL_MS = 200;
/** At the start, the connection gets this many trials before the log says that there is none. */
const TRIALS_AT_START = 3;
/** After this many failed trials, the connection itself is replaced. */
const TRIALS_PER_CONNECTION = 8;
const READY_POLL_INTERVAL_MS = 20;

const CLOSED = 'The connection was closed';
/** Created once: capturing a stack for every rejected command would cost more than deciding in memory. */
const OPEN_ERROR = new Error('The circuit breaker is open');

export interface CircuitBreakerOptions {
  /** Repeated until it succeeds, for the key that failed. It should write, because a server may answer and yet reject writes. */
  readonly trial: (key: string) => Promise<unknown>;
  /** The key of the first trial */
  readonly trialKey: string;
  /** Replaces a connection on which several trials have failed */
  readonly reconnect: () => void;
  readonly log: Log;
  /** How long a command may take, in milliseconds */
  readonly timeoutMs: number;
  /** Called with the seconds that each command took to settle; not for trials */
  readonly observe: (seconds: number) => void;
}

/**
 * A circuit breaker (https://martinfowler.com/bliki/CircuitBreaker.html) decides whether commands to a server are sent.
 *
 * ## Closed
 * As in an electric circuit, commands go through. The first command that fails or times out opens the breaker. So does a
 * lost connection, silently if nothing waits for an answer.
 *
 * ## Open
 * Commands are rejected at once, so that no request waits. The breaker starts in this state, and is half-open for a moment
 * at regular intervals.
 *
 * ## Half-open
 * One command, a trial in the background, goes through, and all others are still rejected. If the trial succeeds, the
 * breaker closes; if not, it stays open, and after several failures the connection is replaced.
 *
 * ## Disposed
 * Commands are rejected for good.
 */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  #state: 'open' | 'closed' | 'disposed' = 'open';
  #failedTrials = 0;
  #trialKey: string;
  #reason = '';
  /** The reasons that are logged already for this outage */
  readonly #loggedReasons = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** How many commands have no answer yet */
  #waiting = 0;
  /** Whether the breaker is open for a connection that was closed while nothing waited, and nothing has failed since */
  #isReconnecting = false;
  /** Called once the reconnection has ended, for the commands that came meanwhile */
  readonly #onReconnected: (() => void)[] = [];

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
    this.#trialKey = options.trialKey;
    this.#scheduleTrial();
  }

  /** Whether commands go through, or will as soon as the client has connected again. */
  get isClosed(): boolean {
    return this.#state === 'closed' || this.#isReconnecting;
  }

  /** Runs a command on a key. Rejects within the timeout when it fails, and at once while the breaker is open. */
  run<T>(key: string, command: () => Promise<T>, timeoutMs = this.#options.timeoutMs): Promise<T> {
    if (this.#isReconnecting) return this.#runReconnected(key, command, timeoutMs);
    if (this.#state !== 'closed') return Promise.reject(OPEN_ERROR);
    const { observe } = this.#options;
    this.#waiting += 1;
    const startedAt = performance.now();
    const result = withTimeout(timeoutMs, command());
    const settle = () => {
      this.#waiting -= 1;
      observe((performance.now() - startedAt) / 1000);
    };
    result.then(settle, (error) => {
      settle();
      this.open(error, key);
    });
    return result;
  }

  /** A command waits for the new connection as for a slow answer, both together within the timeout. */
  async #runReconnected<T>(key: string, command: () => Promise<T>, timeoutMs: number): Promise<T> {
    const startedAt = performance.now();
    const reconnected = new Promise<void>((resolve) => this.#onReconnected.push(resolve));
    await withTimeout(timeoutMs, reconnected).catch(() => this.#isReconnecting && this.#warn(CLOSED));
    return this.run(key, command, timeoutMs - (performance.now() - startedAt));
  }

  /** Opens the breaker, unless it is open: for a failure outside of a command. */
  open(error: unknown, key = this.#trialKey): void {
    if (this.#state !== 'closed') return;
    this.#open(key);
    this.#warn(toMessage(error));
  }

  /**
   * Opens the breaker for a connection that was closed. While nothing waits for an answer, that is no outage, because
   * servers close idle connections. Commands wait until the client has connected again; the log says nothing unless that
   * takes too long.
   */
  lose(): void {
    if (this.#state !== 'closed') return;
    this.#open(this.#trialKey);
    if (this.#waiting === 0) this.#isReconnecting = true;
    else this.#warn(CLOSED);
  }

  #open(key: string): void {
    this.#state = 'open';
    this.#trialKey = key;
    this.#failedTrials = 0;
    this.#reason = '';
    this.#scheduleTrial();
  }

  /** Logs why there is no connection, which says more than the error of a command that has none. */
  noteReason(error: Error): void {
    if (this.#state === 'open') this.#warn(toMessage(error));
  }

  /** The half-open state: one command goes through, and decides. */
  async tryAgain(): Promise<void> {
    if (this.#state !== 'open') return;
    try {
      await withTimeout(this.#options.timeoutMs, this.#options.trial(this.#trialKey));
      this.#close();
    } catch (error) {
      this.#keepOpen(error);
    }
  }

  /** Resolves when the breaker is closed. @throws Error when it is still open after `withinMs` */
  async ready(withinMs: number): Promise<void> {
    const deadline = Date.now() + withinMs;
    while (this.#state !== 'closed') {
      if (this.#state === 'disposed' || Date.now() > deadline) {
        throw new Error(`Redis cannot be used (${this.#reason || 'there is no connection yet'})`);
      }
      await new Promise((resolve) => setTimeout(resolve, READY_POLL_INTERVAL_MS));
    }
  }

  /** Rejects every further command. */
  dispose(): void {
    this.#state = 'disposed';
    this.#endReconnecting();
    clearTimeout(this.#timer);
  }

  #close(): void {
    if (this.#state !== 'open') return;
    this.#state = 'closed';
    this.#reason = '';
    this.#loggedReasons.clear();
    clearTimeout(this.#timer);
    if (!this.#isReconnecting) this.#options.log.info({}, 'Limits are counted in Redis');
    this.#endReconnecting();
  }

  #endReconnecting(): void {
    this.#isReconnecting = false;
    for (const resolve of this.#onReconnected.splice(0)) resolve();
  }

  #scheduleTrial(): void {
    if (this.#state !== 'open') return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.tryAgain(), TRIAL_INTERVAL_MS).unref();
  }

  #keepOpen(error: unknown): void {
    if (this.#state !== 'open') return;
    this.#failedTrials += 1;
    if (this.#reason === '' && this.#failedTrials === TRIALS_AT_START) this.#warn(toMessage(error));
    if (this.#failedTrials % TRIALS_PER_CONNECTION === 0) this.#options.reconnect();
    this.#scheduleTrial();
  }

  /** Logs each reason of an outage once. */
  #warn(reason: string): void {
    this.#reason = reason;
    this.#endReconnecting();
    if (this.#loggedReasons.has(reason)) return;
    this.#loggedReasons.add(reason);
    this.#options.log.warn({ reason }, 'Redis cannot be used: limits are counted in memory');
  }
}

/** Only the message, because an error of ioredis carries the command with its arguments, such as a password. */
function toMessage(error: unknown): string {
  // A name with several addresses, none of which answers, is one error per address.
  if (error instanceof AggregateError) return error.errors.map(toMessage).join(', ');
  const message = error instanceof Error ? error.message : String(error);
  return message.startsWith('MOVED ') ? `${message}: for a cluster, REDIS_URL holds several URLs` : message;
}

interface Waiting {
  turns: number;
  reject: (reason: Error) => void;
}

export interface DeadlineOptions {
  /** How often is looked for what is late, in milliseconds */
  readonly turnMs: number;
  /** What has waited for so many turns is late: up to one turn more than `turns - 1` of them */
  readonly turns: number;
  readonly late: () => Error;
}

/**
 * Bounds how long promises are waited for.
 *
 * Counted in turns of one shared timer. A stall of this process, such as a collection of garbage, is then one turn
 * however long it lasts, and is not mistaken for a stall of the other side; and no timer is made per promise.
 */
export class Deadlines {
  readonly #options: DeadlineOptions;
  readonly #waiting = new Set<Waiting>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: DeadlineOptions) {
    this.#options = options;
  }

  /** The promise's own outcome, or a rejection with an Error when it comes too late. */
  bound<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { turns: 0, reject };
      this.#waiting.add(waiting);
      this.#timer ??= setInterval(() => this.#turn(), this.#options.turnMs).unref();
      promise.then(
        (value) => {
          this.#waiting.delete(waiting);
          resolve(value);
        },
        (error) => {
          this.#waiting.delete(waiting);
          reject(error);
        },
      );
    });
  }

  /** Rejects all that waits: nothing more is to be expected. */
  giveUp(reason: Error): void {
    for (const waiting of this.#waiting) waiting.reject(reason);
    this.#waiting.clear();
  }

  #turn(): void {
    if (this.#waiting.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    for (const waiting of this.#waiting) {
      waiting.turns += 1;
      if (waiting.turns < this.#options.turns) continue;
      this.#waiting.delete(waiting);
      waiting.reject(this.#options.late());
    }
  }
}

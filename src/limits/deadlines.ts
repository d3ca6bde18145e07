const turnMs = 40;
const turns = 4;

interface Waiting {
  turns: number;
  reject: (reason: Error) => void;
}

/**
 * Bounds how long promises are waited for: 120 to 160 ms.
 *
 * Counted in turns of one shared timer. A stall of this process, such as a collection of garbage, is then one turn
 * however long it lasts, and is not mistaken for a stall of the other side; and no timer is made per promise.
 */
export class Deadlines {
  readonly #waiting = new Set<Waiting>();
  #timer: NodeJS.Timeout | undefined;

  /** The promise's own outcome, or a rejection with an Error when it comes too late. */
  bound<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { turns: 0, reject };
      this.#waiting.add(waiting);
      this.#timer ??= setInterval(() => this.#turn(), turnMs).unref();
      promise.then(resolve, reject).finally(() => this.#waiting.delete(waiting));
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
      if (waiting.turns < turns) continue;
      this.#waiting.delete(waiting);
      waiting.reject(new Error(`No answer within ${turns * turnMs} ms`));
    }
  }
}

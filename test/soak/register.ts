/** Nothing that a request has started goes on for longer, also when its response was lost. */
const LOST_ENDS_MS = 10_000;
/** Well over the time from a request to the check of its response */
const REMEMBERED_MS = 30_000;

/** A write that was sent, until it is known what became of it. */
export interface Write {
  acknowledge(): void;
  /** It may have been done or not, or still be. */
  lose(): void;
  /** It was not done. */
  discard(): void;
}

/** Times are those of performance.now(). */
interface Candidate<Value> {
  readonly value: Value;
  /** From then on it changes nothing any more. */
  endedAt: number;
  /** From then on nobody may read it any more. */
  replacedAt: number;
}

/**
 * The values that something may have while several clients write it. An acknowledged write has replaced all that had ended
 * before it was sent.
 */
export class Register<Value> {
  #candidates: Candidate<Value>[] = [];

  constructor(first: Value) {
    this.#add(first, 0);
  }

  /** Notes a write that is about to be sent. One that is not `isSure` may be acknowledged without having written. */
  begin(value: Value, isSure = true): Write {
    const sentAt = performance.now();
    const candidate = this.#add(value, Number.POSITIVE_INFINITY);
    return {
      acknowledge: () => {
        candidate.endedAt = performance.now();
        if (isSure) this.#replaceBefore(sentAt);
      },
      lose() {
        candidate.endedAt = performance.now() + LOST_ENDS_MS;
      },
      discard: () => {
        this.#candidates = this.#candidates.filter((each) => each !== candidate);
      },
    };
  }

  /** Whether it may have had such a value at some time since then. */
  mayHaveBeen(isSuch: (value: Value) => boolean, since: number): boolean {
    const isForgotten = since < performance.now() - REMEMBERED_MS;
    return isForgotten || this.#candidates.some((each) => each.replacedAt > since && isSuch(each.value));
  }

  mayBe(value: Value, since: number): boolean {
    return this.mayHaveBeen((each) => each === value, since);
  }

  #add(value: Value, endedAt: number): Candidate<Value> {
    const candidate = { value, endedAt, replacedAt: Number.POSITIVE_INFINITY };
    this.#candidates.push(candidate);
    return candidate;
  }

  #replaceBefore(sentAt: number): void {
    const now = performance.now();
    for (const candidate of this.#candidates) {
      if (candidate.endedAt < sentAt) candidate.replacedAt = Math.min(candidate.replacedAt, now);
    }
    this.#candidates = this.#candidates.filter(({ replacedAt }) => replacedAt > now - REMEMBERED_MS);
  }
}

import type { Limits, WindowKind } from '../../src/index.js';

export interface Span {
  count: number;
  endsAt: number;
}

/** The promised limits for one key, modelled as simply as possible: whole seconds, one node. */
export class LimitsModel {
  nowSeconds = 0;
  readonly #windows: readonly {
    readonly name: string;
    readonly span: Span;
    readonly length: number;
    readonly field: string;
  }[];

  constructor(windows: readonly WindowKind[]) {
    this.#windows = windows.map(({ name, lengthMs, field }) => ({
      name,
      span: { count: 0, endsAt: 0 },
      length: lengthMs / 1000,
      field,
    }));
  }

  /** Whether a window is in its last second. */
  get isAboutToEnd(): boolean {
    return this.#windows.some(({ span }) => span.endsAt === this.nowSeconds + 1);
  }

  consume(limits: Limits, cost: number, isBanned = false) {
    this.#endPassed();
    const spans = this.#windows.flatMap(({ field, ...window }) => {
      const limit = limits[field] ?? Number.POSITIVE_INFINITY;
      return limit === Number.POSITIVE_INFINITY ? [] : { ...window, limit };
    });
    const denying = spans.filter(({ span, limit }) => span.count + cost > limit);
    const isAllowed = denying.length === 0;
    if (isAllowed && !isBanned) for (const { span, length } of spans) this.#add(span, cost, length);
    const toLeft = ({ span, limit }: (typeof spans)[number]) => Math.max(0, limit - span.count);
    const toSeconds = ({ span, length }: (typeof spans)[number]) =>
      (span.endsAt || this.nowSeconds + length) - this.nowSeconds;
    const fewest = Math.min(...spans.map(toLeft));
    // Of those that deny, or else have the fewest requests left, the one that ends last binds.
    const candidates = isAllowed ? spans.filter((each) => toLeft(each) === fewest) : denying;
    const seconds = Math.max(...candidates.map(toSeconds));
    return {
      isAllowed,
      remaining: spans.map(toLeft),
      binding: candidates.find((each) => toSeconds(each) === seconds)?.name,
      retryAfterSeconds: isAllowed ? undefined : seconds,
    };
  }

  #add(span: Span, cost: number, length: number): void {
    if (span.endsAt === 0) span.endsAt = this.nowSeconds + length;
    span.count += cost;
  }

  #endPassed(): void {
    for (const { span } of this.#windows) {
      if (span.endsAt <= this.nowSeconds) Object.assign(span, { count: 0, endsAt: 0 });
    }
  }
}

import type { Limits, WindowKind } from '../../src/index.js';

export interface Span {
  count: number;
  endsAt: number;
}

/** The promised limits for one key, modelled as simply as possible: whole seconds, one node. */
export class LimitsModel {
  nowSeconds = 0;
  readonly #windows: readonly { readonly span: Span; readonly length: number; readonly field: string }[];

  constructor(windows: readonly WindowKind[]) {
    this.#windows = windows.map(({ lengthMs, field }) => ({
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
    const spans = this.#windows.flatMap(({ span, length, field }) => {
      const limit = limits[field];
      return limit === undefined ? [] : { span, length, limit };
    });
    const denying = spans.filter(({ span, limit }) => span.count + cost > limit);
    const isAllowed = denying.length === 0;
    if (isAllowed && !isBanned) for (const { span, length } of spans) this.#add(span, cost, length);
    const waits = denying.map(
      ({ span, length }) => (span.endsAt || this.nowSeconds + length) - this.nowSeconds,
    );
    return {
      isAllowed,
      remaining: spans.map(({ span, limit }) => Math.max(0, limit - span.count)),
      retryAfterSeconds: isAllowed ? undefined : Math.max(...waits),
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

import { type Limits, WINDOWS } from '../../src/plans.js';

interface Span {
  count: number;
  endsAt: number;
}

/** The limits of the contract for one key, modelled as simply as possible: whole seconds, one node. */
export class LimitsModel {
  nowSeconds = 0;
  readonly #windows = WINDOWS.map(({ lengthMs, field }) => {
    const span: Span = { count: 0, endsAt: 0 };
    return { span, length: lengthMs / 1000, field };
  });

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

/** The same with the contract's bans. */
export class BansModel extends LimitsModel {
  readonly #denied: Span = { count: 0, endsAt: 0 };
  #banEndsAt = 0;
  #banLength = 0;

  request(limits: Limits, cost: number) {
    const banLeft = this.#banEndsAt - this.nowSeconds;
    const isBanned = banLeft > 0;
    const { isAllowed, remaining, retryAfterSeconds } = this.consume(limits, cost, isBanned);
    if (!isBanned && !isAllowed) this.#deny(limits.perMinute, cost);
    if (isBanned)
      return { code: 'api_key_banned', remaining, seconds: Math.max(banLeft, retryAfterSeconds ?? 0) };
    return { code: isAllowed ? undefined : 'rate_limit_exceeded', remaining, seconds: retryAfterSeconds };
  }

  unban(): void {
    this.#banEndsAt = 0;
    this.#banLength = 0;
  }

  #deny(perMinute: number, cost: number): void {
    if (this.#denied.endsAt <= this.nowSeconds) {
      this.#denied.count = 0;
      this.#denied.endsAt = this.nowSeconds + 60;
    }
    this.#denied.count += cost;
    if (this.#denied.count < perMinute) return;
    const isRepeated = this.#banLength > 0 && this.nowSeconds - this.#banEndsAt < 86_400;
    this.#banLength = isRepeated ? Math.min(this.#banLength * 2, 86_400) : 300;
    this.#banEndsAt = this.nowSeconds + this.#banLength;
    this.#denied.count = 0;
  }
}

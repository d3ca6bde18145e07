import type { Limits } from '../../src/limits/plans.js';

interface Span {
  count: number;
  endsAt: number;
}

/** One key under the contract's section Limits, said as plainly as possible; whole seconds, one node. */
export class KeyModel {
  nowSeconds = 0;
  #minute: Span = { count: 0, endsAt: 0 };
  #day: Span = { count: 0, endsAt: 0 };
  #refused: Span = { count: 0, endsAt: 0 };
  #banEndsAt = 0;
  #banLength = 0;

  take(limits: Limits, cost: number) {
    this.#endWhatEnded();
    const spans = [
      { span: this.#minute, limit: limits.perMinute, length: 60 },
      { span: this.#day, limit: limits.perDay ?? Number.POSITIVE_INFINITY, length: 86_400 },
    ];
    const refusing = spans.filter(({ span, limit }) => span.count + cost > limit);
    const banned = this.#banEndsAt > this.nowSeconds;
    const admitted = refusing.length === 0 && !banned;
    if (admitted) for (const { span, length } of spans) this.#add(span, cost, length);
    const waits = refusing.map(
      ({ span, length }) => (span.endsAt || this.nowSeconds + length) - this.nowSeconds,
    );
    const banLeft = Math.max(0, this.#banEndsAt - this.nowSeconds);
    if (!admitted && !banned) this.#refuse(limits.perMinute, cost);
    return {
      code: admitted ? null : banned ? 'api_key_banned' : 'rate_limit_exceeded',
      remaining: spans.map(({ span, limit }) => Math.max(0, limit - span.count)),
      retryAfterSeconds: admitted ? null : Math.max(banLeft, ...waits),
    };
  }

  unban(): void {
    this.#banEndsAt = 0;
    this.#banLength = 0;
    this.#refused = { count: 0, endsAt: 0 };
  }

  #refuse(perMinute: number, cost: number): void {
    this.#add(this.#refused, cost, 60);
    if (this.#refused.count < perMinute) return;
    const again = this.#banLength > 0 && this.nowSeconds - this.#banEndsAt < 86_400;
    this.#banLength = again ? Math.min(this.#banLength * 2, 86_400) : 300;
    this.#banEndsAt = this.nowSeconds + this.#banLength;
    this.#refused = { count: 0, endsAt: 0 };
  }

  #add(span: Span, cost: number, length: number): void {
    if (span.endsAt === 0) span.endsAt = this.nowSeconds + length;
    span.count += cost;
  }

  #endWhatEnded(): void {
    for (const span of [this.#minute, this.#day, this.#refused]) {
      if (span.endsAt <= this.nowSeconds) Object.assign(span, { count: 0, endsAt: 0 });
    }
  }
}

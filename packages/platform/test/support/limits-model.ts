import { definition } from '#operations-under-test';
import { LimitsModel, type Span } from '../../../limits/test/support/limits-model.js';
import type { Limits } from '../../src/definition/definition.js';

/** The limits of the contract for one key, with its bans. */
export class BansModel extends LimitsModel {
  readonly #denied: Span = { count: 0, endsAt: 0 };
  #banEndsAt = 0;
  #banLength = 0;

  constructor() {
    super(definition.windows);
  }

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

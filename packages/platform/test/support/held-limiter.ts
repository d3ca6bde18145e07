import { createLimiter, type Limiter } from '@animal-store/limits';
import { until } from '@animal-store/platform/testing';
import { pino } from 'pino';
import { definition } from '#operations-under-test';

/** A limiter that decides as one over Redis does: later, and by counts that this process may not know yet. */
export interface HeldLimiter extends Limiter {
  /** Whether this process knows what has been counted, as after an answer of Redis. Default: true */
  knowsCounts: boolean;
  /** From now on, decisions wait for `release`. */
  hold(): void;
  /** Resolves when a decision waits. */
  untilHeld(): Promise<void>;
  release(): void;
}

/** @param clock in milliseconds */
export async function createHeldLimiter(clock: () => number): Promise<HeldLimiter> {
  const log = pino({ level: 'silent' });
  const limiter = await createLimiter({ windows: definition.windows, redisUrls: [], log, clock, now: clock });
  let isHolding = false;
  const held: (() => void)[] = [];
  const own: HeldLimiter = {
    ...limiter,
    knowsCounts: true,
    isDenied: (subject, cost) => own.knowsCounts && limiter.isDenied(subject, cost),
    async consume(subject, cost) {
      if (isHolding) await new Promise<void>((resolve) => held.push(resolve));
      return limiter.consume(subject, cost);
    },
    hold() {
      isHolding = true;
    },
    async untilHeld() {
      await until(() => held.length > 0 || undefined);
    },
    release() {
      isHolding = false;
      for (const resolve of held.splice(0)) resolve();
    },
  };
  return own;
}

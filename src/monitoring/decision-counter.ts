import { Counter, type Registry } from 'prom-client';
import { PLAN_NAMES, type Plan } from '../contract/plans.js';
import type { ErrorCode } from '../errors/api-error.js';
import type { Limiter } from '../limits/limiter.js';

const OUTCOMES = ['admitted', 'rate_limit_exceeded', 'api_key_banned'] as const satisfies (
  | ErrorCode
  | 'admitted'
)[];
/** In place of a plan, for requests without a valid key */
const ANONYMOUS = 'anonymous';

/** Every request passes here, so it increments plain numbers, which prom-client collects on each scrape. */
export function createDecisionCounter(
  registry: Registry,
  limiter: Pick<Limiter, 'state'>,
): (code: ErrorCode | undefined, plan: Plan | undefined) => void {
  const counts = new Map<string, number>();
  const add = (outcome: string, store: string, plan: string, count: number) => {
    const labels = `${outcome} ${store} ${plan}`;
    counts.set(labels, (counts.get(labels) ?? 0) + count);
  };
  // Series start at 0, because Prometheus does not see the first increment of one that starts at 1.
  for (const store of ['memory', 'redis', 'degraded']) {
    for (const plan of [...PLAN_NAMES, ANONYMOUS])
      for (const outcome of OUTCOMES) add(outcome, store, plan, 0);
  }
  new Counter({
    name: 'limiter_decisions_total',
    help: 'Decisions of the limiter by outcome, store that decided, and plan; a batch is one decision',
    labelNames: ['outcome', 'store', 'plan'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, count] of counts) this.labels(...labels.split(' ')).inc(count);
    },
  });
  return (code, plan) => add(code ?? 'admitted', limiter.state, plan ?? ANONYMOUS, 1);
}

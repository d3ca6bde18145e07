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
  const counts = new Map<string, { readonly labels: Record<string, string>; count: number }>();
  const find = (outcome: string, store: string, plan: string) => {
    const key = `${outcome} ${store} ${plan}`;
    let entry = counts.get(key);
    if (entry === undefined) {
      entry = { labels: { outcome, store, plan }, count: 0 };
      counts.set(key, entry);
    }
    return entry;
  };
  // Series start at 0, because Prometheus does not see the first increment of one that starts at 1.
  for (const store of ['memory', 'redis', 'degraded']) {
    for (const plan of [...PLAN_NAMES, ANONYMOUS]) for (const outcome of OUTCOMES) find(outcome, store, plan);
  }
  new Counter({
    name: 'limiter_decisions_total',
    help: 'Decisions of the limiter by outcome, store that decided, and plan; a batch is one decision',
    labelNames: ['outcome', 'store', 'plan'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { labels, count } of counts.values()) this.inc(labels, count);
    },
  });
  return (code, plan) => {
    find(code ?? 'admitted', limiter.state, plan ?? ANONYMOUS).count += 1;
  };
}

import { Gauge, type Registry } from 'prom-client';
import { PLAN_NAMES, type Plan } from '../contract/plans.js';
import { createCachedCheck } from './probes.js';

/** How many keys there are by plan, without those that are revoked. Plans without any are left out. */
type Counts = ReadonlyMap<Plan, number>;

interface KeyCounts {
  /** Those that are banned now */
  readonly banned: Counts;
  /** Those that expire within seven days */
  readonly expiring: Counts;
}

export interface KeyMetricsOptions {
  /** May fail with a database error */
  readonly countKeys: () => Promise<KeyCounts>;
  readonly usage: {
    /** How many sums are not stored yet */
    readonly waiting: number;
    /** How many requests were not counted */
    readonly dropped: number;
  };
}

/**
 * Keys are counted in the database, because one node knows only those that it has served. The queries are shared and
 * bounded like a readiness check. While they fail there is no series, since nobody knows the numbers.
 */
export function addKeyMetrics(registry: Registry, { countKeys, usage }: KeyMetricsOptions): void {
  const registers = [registry];
  let counts: KeyCounts;
  const refresh = createCachedCheck(async () => {
    counts = await countKeys();
  });
  const addCount = (name: string, help: string, read: (counts: KeyCounts) => Counts) =>
    new Gauge({
      name,
      help: `${help}. Every node reports the same numbers: do not sum over nodes`,
      labelNames: ['plan'],
      registers,
      async collect() {
        try {
          await refresh();
          for (const plan of PLAN_NAMES) this.set({ plan }, read(counts).get(plan) ?? 0);
        } catch {
          this.reset();
        }
      },
    });
  addCount('animal_store_api_keys_banned', 'Keys that are banned now, by any node', ({ banned }) => banned);
  addCount(
    'animal_store_api_keys_expiring',
    'Keys that expire within seven days',
    ({ expiring }) => expiring,
  );
  new Gauge({
    name: 'animal_store_api_key_usage_waiting',
    help: 'Sums of usage that are not stored yet; they are stored every 15 to 25 s',
    registers,
    collect() {
      this.set(usage.waiting);
    },
  });
  new Gauge({
    name: 'animal_store_api_key_usage_dropped',
    help: 'Requests that usage does not count, because too many sums could not be stored',
    registers,
    collect() {
      this.set(usage.dropped);
    },
  });
}

import { createBatchLoader } from '../batching/batch-loader.js';
import type { InsuranceLimiter, LimitStore } from './limit-store.js';
import { RateLimitResult } from './rate-limit-result.js';
import type { Window } from './windows.js';

/** One call of `Limiter.consume`. */
interface Consumption {
  readonly id: string;
  readonly cost: number;
  readonly windows: readonly Window[];
}

/** Resolves with the result, whether the request is allowed or denied. */
export type Consume = (consumption: Consumption) => Promise<RateLimitResult>;

/**
 * Consumes from a store. The requests of one subject in a batch are counted together, in their order. When they do not
 * all fit, nothing has been counted and each is counted by itself: exactly those that fit are then allowed.
 */
export function createBatchedConsume(store: LimitStore, memory: InsuranceLimiter): Consume {
  const consumeOne = async ({ id, cost, windows }: Consumption) => {
    const known = memory.peek(id, windows)?.counters;
    try {
      return await store.consume(id, cost, { windows, known });
    } catch (result) {
      // rate-limiter-flexible rejects with the result of a denied request.
      if (result instanceof RateLimitResult) return result;
      throw result;
    }
  };
  const consumeTogether = async (group: readonly Consumption[]) => {
    const [first] = group as [Consumption];
    let cost = group.reduce((sum, consumption) => sum + consumption.cost, 0);
    const result = await consumeOne({ ...first, cost });
    if (group.length === 1) return [result];
    if (!result.isAllowed) return Promise.all(group.map((consumption) => consumeOne(consumption)));
    return group.map((consumption) => {
      cost -= consumption.cost;
      return result.before(cost);
    });
  };
  const consumeAll = async (batch: readonly Consumption[]) => {
    const groups = groupBySubject(batch);
    const [only] = groups as [Consumption[]];
    if (groups.length === 1) return consumeTogether(only);
    const results = new Map<Consumption, RateLimitResult | Error>();
    const consumeGroup = async (group: readonly Consumption[]) => {
      const settled = await consumeTogether(group).catch((error: Error) => group.map(() => error));
      for (const [index, consumption] of group.entries()) {
        results.set(consumption, settled[index] as RateLimitResult | Error);
      }
    };
    await Promise.all(groups.map(consumeGroup));
    return batch.map((consumption) => results.get(consumption) as RateLimitResult | Error);
  };
  return createBatchLoader<Consumption, RateLimitResult>(consumeAll).load;
}

/** Requests of one subject under the same limits. */
function groupBySubject(batch: readonly Consumption[]): Consumption[][] {
  const groups = new Map<string | Consumption, Consumption[]>();
  for (const consumption of batch) {
    const group = groups.get(consumption.id);
    if (group === undefined) groups.set(consumption.id, [consumption]);
    else if (group[0]?.windows === consumption.windows) group.push(consumption);
    else groups.set(consumption, [consumption]);
  }
  return [...groups.values()];
}

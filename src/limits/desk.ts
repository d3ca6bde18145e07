import { createLimiter, type LimiterOptions, type Standing } from './limiter.js';
import type { Limits } from './plans.js';
import { askServices } from './remote.js';

/** How an operator, in a process of its own, sees and mends what the limits know of a key. */
export interface LimitDesk {
  /** One standing where limits live in Redis; otherwise one of each service that runs, in its memory. */
  inspect(keyId: string, limits: Limits): Promise<Standing[]>;
  /** Lifts a ban and forgets its doubling; answers as inspect does. */
  unban(keyId: string, limits: Limits): Promise<Standing[]>;
  close(): Promise<void>;
}

export function openDesk(
  options: Pick<LimiterOptions, 'redisUrls'> & { readonly databaseUrl: string },
): LimitDesk {
  if (options.redisUrls.length === 0) {
    const ask = (keyId: string, limits: Limits, unban: boolean) =>
      askServices(options.databaseUrl, { keyId, limits, unban });
    return {
      inspect: (keyId, limits) => ask(keyId, limits, false),
      unban: (keyId, limits) => ask(keyId, limits, true),
      close: async () => {},
    };
  }
  // That Redis is away is told once, by the question that cannot be answered.
  const limiter = createLimiter({ ...options, log: { info() {}, warn() {} } });
  const inspect = async (keyId: string, limits: Limits) => [await limiter.inspect(keyId, limits)];
  return {
    inspect,
    async unban(keyId, limits) {
      await limiter.unban(keyId);
      return inspect(keyId, limits);
    },
    close: () => limiter.close(),
  };
}

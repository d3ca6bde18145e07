import type { FastifyInstance } from 'fastify';
import type { Limiter } from '../limits/limiter.js';
import { READINESS_TIMEOUT_MS, TimeoutError, TimeoutTimer } from '../timeouts.js';

/** How long a good answer of the database stands, in milliseconds. */
const TRUST_MS = 1_000;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Asked for again and again by machines: of interest in the log only when it fails */
    isProbe?: boolean;
  }
}

export interface HealthOptions {
  /** Resolves when the database answers and its schema is the one that this service was built for. */
  readonly checkDatabase: () => Promise<void>;
  readonly limiter: Limiter;
}

/**
 * Probes for whoever runs the service: is the process alive, and can it serve. Neither needs a key. A service without
 * its Redis still serves, so that it stays ready, as `degraded`; one that ends serves what it has, and is not.
 */
export function registerHealth(
  app: FastifyInstance,
  { checkDatabase, limiter, isClosing }: HealthOptions & { readonly isClosing: () => boolean },
): void {
  app.get('/health/live', { config: { isProbe: true } }, async () => ({ status: 'ok' }));

  app.get('/health/ready', { config: { isProbe: true } }, async (request, reply) => {
    if (isClosing()) return reply.code(503).send({ status: 'draining' });
    try {
      await checkDatabase();
      return {
        status: limiter.state === 'degraded' ? 'degraded' : 'ok',
        database: 'ok',
        limits: limiter.state,
      };
    } catch (error) {
      request.log.warn({ reqId: request.id, err: error }, 'not ready: the database cannot be used');
      return reply.code(503).send({ status: 'unavailable', database: 'unavailable', limits: limiter.state });
    }
  });
}

/**
 * The same check for any number of probes, whatever the database does: one runs at a time, for 2 s at most, and its
 * success stands for a second. A failure does not, so that the first probe after a recovery tells of it.
 */
export function shareCheck(check: () => Promise<void>): () => Promise<void> {
  let goodUntil = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | undefined;
  const timer = new TimeoutTimer({
    timeoutMs: READINESS_TIMEOUT_MS,
    tickMs: READINESS_TIMEOUT_MS / 20,
    createError: () => new TimeoutError(`The database did not answer within ${READINESS_TIMEOUT_MS} ms`),
  });
  const run = async () => {
    try {
      await timer.race(check());
      goodUntil = performance.now() + TRUST_MS;
    } finally {
      running = undefined;
    }
  };
  return async () => {
    if (performance.now() < goodUntil) return;
    running ??= run();
    await running;
  };
}

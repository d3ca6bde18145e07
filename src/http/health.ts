import type { FastifyInstance } from 'fastify';
import type { Limiter } from '../limits/limiter.js';
import { READINESS_TIMEOUT_MS, TimeoutError, TimeoutTimer } from '../timeouts.js';
import { identify } from './request-log.js';

/** How long a successful check stays valid. */
const READINESS_TTL_MS = 1_000;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Polled by machines: logged at debug level while it succeeds */
    isProbe?: boolean;
  }
}

export interface HealthOptions {
  /** Resolves when the database responds and has the schema that this service was built for. */
  readonly checkReadiness: () => Promise<void>;
  readonly limiter: Limiter;
}

/**
 * Probes for operators: is the process alive, and can it serve. Neither needs a key. A service without its Redis still
 * serves, so it stays ready, as `degraded`; one that is shutting down finishes its requests, but is not ready.
 */
export function registerHealth(
  app: FastifyInstance,
  { checkReadiness, limiter, isClosing }: HealthOptions & { readonly isClosing: () => boolean },
): void {
  app.get('/health/live', { config: { isProbe: true } }, async () => ({ status: 'ok' }));

  app.get('/health/ready', { config: { isProbe: true } }, async (request, reply) => {
    if (isClosing()) return reply.code(503).send({ status: 'draining' });
    try {
      await checkReadiness();
      return {
        status: limiter.state === 'degraded' ? 'degraded' : 'ok',
        database: 'ok',
        limits: limiter.state,
      };
    } catch (error) {
      request.log.warn({ ...identify(request), err: error }, 'not ready: the database cannot be used');
      return reply.code(503).send({ status: 'unavailable', database: 'unavailable', limits: limiter.state });
    }
  });
}

/**
 * Shares one check among any number of probes, whatever the database does: one runs at a time, for READINESS_TIMEOUT_MS
 * at most, and its success is valid for a second. A failure is not, so that the first probe after a recovery sees it.
 *
 * @param now a monotonic clock, in milliseconds
 */
export function createReadinessCheck(
  check: () => Promise<void>,
  now: () => number = () => performance.now(),
): () => Promise<void> {
  let validUntil = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | undefined;
  const timer = new TimeoutTimer({
    timeoutMs: READINESS_TIMEOUT_MS,
    tickMs: READINESS_TIMEOUT_MS / 20,
    createError: () => new TimeoutError(`The database did not answer within ${READINESS_TIMEOUT_MS} ms`),
  });
  const run = async () => {
    try {
      await timer.race(check());
      validUntil = now() + READINESS_TTL_MS;
    } finally {
      running = undefined;
    }
  };
  return async () => {
    if (now() < validUntil) return;
    running ??= run();
    await running;
  };
}

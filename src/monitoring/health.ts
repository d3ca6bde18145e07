import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { READINESS_TIMEOUT_MS, TimeoutError, TimeoutTimer } from '../batching/timeouts.js';
import type { Limiter } from '../limits/limiter.js';

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

/** The body of `/health/ready`. */
interface Readiness {
  /** `degraded` when limits are counted without Redis, which does not keep the service from serving */
  readonly status: 'ok' | 'degraded' | 'unavailable' | 'draining';
  readonly database?: 'ok' | 'unavailable';
  /** Where limits are counted */
  readonly limits?: string;
}

/** What operators ask of a process */
export interface Health {
  /** Never rejects */
  readReadiness(): Promise<Readiness>;
}

/** A process that is shutting down finishes its requests, but is not ready. */
export function createHealth({
  checkReadiness,
  limiter,
  isClosing,
  log,
}: HealthOptions & { readonly isClosing: () => boolean; readonly log: FastifyBaseLogger }): Health {
  return {
    async readReadiness() {
      if (isClosing()) return { status: 'draining' };
      try {
        await checkReadiness();
        const status = limiter.state === 'degraded' ? 'degraded' : 'ok';
        return { status, database: 'ok', limits: limiter.state };
      } catch (error) {
        log.warn({ err: error }, 'not ready: the database cannot be used');
        return { status: 'unavailable', database: 'unavailable', limits: limiter.state };
      }
    },
  };
}

export const LIVE_PATH = '/health/live';
export const READY_PATH = '/health/ready';

/** Probes for operators: is the process alive, and can it serve. Neither needs a key. */
export function registerHealth(app: FastifyInstance, health: Health): void {
  app.get(LIVE_PATH, { config: { isProbe: true } }, async () => ({ status: 'ok' }));

  app.get(READY_PATH, { config: { isProbe: true } }, async (_request, reply) => {
    const readiness = await health.readReadiness();
    const isReady = readiness.status === 'ok' || readiness.status === 'degraded';
    return reply.code(isReady ? 200 : 503).send(readiness);
  });
}

/**
 * Shares one check among any number of probes, whatever the database does: one runs at a time, for READINESS_TIMEOUT_MS
 * at most, and its success is valid for a second. A failure is not, so that the first probe after a recovery sees it.
 *
 * @param now a monotonic clock, in milliseconds
 */
export function createCachedCheck(
  check: () => Promise<void>,
  now: () => number = () => performance.now(),
): () => Promise<void> {
  let validUntil = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | undefined;
  const timer = new TimeoutTimer({
    timeoutMs: READINESS_TIMEOUT_MS,
    intervalMs: READINESS_TIMEOUT_MS / 20,
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

import type { Limiter } from '@animal-store/limits';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { Registry } from 'prom-client';
import { StandbyError } from '../connections/standby.js';
import { READINESS_TIMEOUT_MS, withTimeout } from '../timing/timeouts.js';

/** Longer than any response takes. Ends connections that send no request. */
const REQUEST_TIMEOUT_MS = 10_000;
/** How long a successful check stays valid. */
const READINESS_TTL_MS = 1_000;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Polled by machines: logged at debug level while it succeeds */
    isProbe?: boolean;
  }
}

interface ReadinessOptions {
  /** Resolves with a warning for the operator, if there is one, while the service can serve */
  readonly checkReadiness: () => Promise<string | undefined>;
  readonly limiter: Limiter;
  readonly isClosing: () => boolean;
  readonly log: FastifyBaseLogger;
}

/** The body of `/health/ready`. */
interface Readiness {
  /** `degraded` when limits are counted without Redis, which does not keep the service from serving */
  readonly status: 'ok' | 'degraded' | 'unavailable' | 'draining';
  readonly database?: 'ok' | 'unavailable' | 'standby';
  /** Where limits are counted */
  readonly limits?: string;
  /** A problem that does not keep the service from serving */
  readonly warning?: string;
}

/** What operators' machines poll: `/metrics` and `/health`. Neither needs a key. */
export interface Probes {
  /** Whether the process can serve. Never rejects */
  readReadiness(): Promise<Readiness>;
  /** The metrics in Prometheus' text format */
  readMetrics(): Promise<string>;
}

/** A process that is shutting down finishes its requests, but is not ready. */
export function createReadiness({ checkReadiness, limiter, isClosing, log }: ReadinessOptions) {
  return async (): Promise<Readiness> => {
    if (isClosing()) return { status: 'draining' };
    try {
      const warning = await checkReadiness();
      const limits = limiter.state;
      const status = limits === 'degraded' ? 'degraded' : 'ok';
      return { status, database: 'ok', limits, ...(warning !== undefined && { warning }) };
    } catch (error) {
      log.warn({ err: error }, 'not ready: the database cannot be used');
      const database = error instanceof StandbyError ? 'standby' : 'unavailable';
      return { status: 'unavailable', database, limits: limiter.state };
    }
  };
}

export const LIVE_PATH = '/health/live';
export const READY_PATH = '/health/ready';
export const METRICS_PATH = '/metrics';

export const PROBE_PATHS: readonly string[] = [LIVE_PATH, READY_PATH, METRICS_PATH];

export function registerProbes(app: FastifyInstance, probes: Probes): void {
  const config = { isProbe: true };
  app.get(LIVE_PATH, { config }, async () => ({ status: 'ok' }));
  app.get(READY_PATH, { config }, async (_request, reply) => {
    const readiness = await probes.readReadiness();
    const isReady = readiness.status === 'ok' || readiness.status === 'degraded';
    return reply.code(isReady ? 200 : 503).send(readiness);
  });
  app.get(METRICS_PATH, { config }, async (_request, reply) =>
    reply.type(Registry.PROMETHEUS_CONTENT_TYPE).send(await probes.readMetrics()),
  );
}

/** The server on METRICS_PORT. It outlives the service's own, so that both probes report the shutdown to its end. */
export function buildProbeServer(probes: Probes, log: FastifyBaseLogger): FastifyInstance {
  const app: FastifyInstance = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: true,
  });
  registerProbes(app, probes);
  return app;
}

/**
 * Shares one check among any number of probes, whatever the database does. One runs at a time, for READINESS_TIMEOUT_MS
 * at most. A success is valid for READINESS_TTL_MS. A failure is not kept, so that the first probe after a recovery sees
 * the recovery.
 *
 * @param now a monotonic clock, in milliseconds
 */
export function createCachedCheck<Result>(
  check: () => Promise<Result>,
  now: () => number = () => performance.now(),
): () => Promise<Result> {
  let valid: { readonly result: Result; readonly until: number } | undefined;
  let running: Promise<Result> | undefined;
  const run = async () => {
    try {
      const result = await withTimeout(READINESS_TIMEOUT_MS, check());
      valid = { result, until: now() + READINESS_TTL_MS };
      return result;
    } finally {
      running = undefined;
    }
  };
  return async () => {
    if (valid !== undefined && now() < valid.until) return valid.result;
    running ??= run();
    return running;
  };
}

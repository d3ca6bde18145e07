import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { Registry } from 'prom-client';
import type { ReadinessReport } from './readiness.js';

/** Longer than any response takes. Ends connections that send no request. */
const REQUEST_TIMEOUT_MS = 10_000;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Polled by machines: logged at debug level while it succeeds */
    isProbe?: boolean;
  }
}

/** What operators' machines poll: `/metrics` and `/health`. Neither needs a key. */
export interface Probes {
  /** Never rejects */
  readReadiness(): Promise<ReadinessReport>;
  /** The metrics in Prometheus' text format */
  readMetrics(): Promise<string>;
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

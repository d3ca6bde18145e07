import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { type Health, LIVE_PATH, READY_PATH, registerHealth } from './health.js';
import { METRICS_PATH, registerMetrics } from './metrics.js';

/** Longer than any answer takes; it ends connections that send no request. */
const REQUEST_TIMEOUT_MS = 10_000;

export const PROBE_PATHS: readonly string[] = [LIVE_PATH, READY_PATH, METRICS_PATH];

/** What operators' machines poll: `/metrics` and `/health`. */
export interface Probes extends Health {
  /** The metrics in Prometheus' text format */
  readMetrics(): Promise<string>;
}

export function registerProbes(app: FastifyInstance, probes: Probes): void {
  registerHealth(app, probes);
  registerMetrics(app, () => probes.readMetrics());
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

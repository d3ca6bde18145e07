import type { FastifyInstance } from 'fastify';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { PoolUse } from '../database/client.js';
import type { Decision } from '../limits/decision.js';
import type { Limiter } from '../limits/limiter.js';
import type { LoadWatch } from './overload.js';

/** In seconds: from a lookup in a warm database to what a client waits for when the database is away. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export interface MetricsOptions {
  readonly limiter: Limiter;
  /** The use of the pool is shown when there is one. */
  readonly pool?: PoolUse;
  /** Names this process among several that share the port. */
  readonly worker?: number;
}

interface Sources extends MetricsOptions {
  readonly load: LoadWatch;
  readonly checkDatabase: () => Promise<void>;
}

/** What is counted of a request; every member has few values, whatever clients send. */
export interface RequestReport {
  /** A name from the router, `batch` for several at once, or `unknown` */
  readonly operation: string;
  readonly face: 'rest' | 'rpc' | 'other';
  /** That of the answer; 499 when the client left before it */
  readonly status: number;
  readonly seconds: number;
}

export interface Metrics {
  readonly registry: Registry;
  countRequest(report: RequestReport): void;
  countDecision(code: Decision['code']): void;
}

/**
 * The numbers of one process, in a registry of their own. With several workers each answers for itself: a scrape reaches
 * any of them, and the label `worker` tells which, so that no series mixes two. Sum over it.
 */
export function createMetrics(sources: Sources): Metrics {
  const registry = new Registry();
  if (sources.worker !== undefined) registry.setDefaultLabels({ worker: String(sources.worker) });
  collectDefaultMetrics({ register: registry });
  addPool(registry, sources.pool);
  addStates(registry, sources);
  return {
    registry,
    countRequest: createRequestCount(registry),
    countDecision: createDecisionCount(registry, sources.limiter),
  };
}

/** `GET /metrics`, in the format that Prometheus scrapes. */
export function registerMetrics(app: FastifyInstance, { registry }: Metrics): void {
  app.get('/metrics', { config: { isProbe: true } }, async (_request, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()),
  );
}

/** Labels are resolved once for each combination: that they are few is what makes keeping them safe. */
function createRequestCount(registry: Registry): Metrics['countRequest'] {
  const histogram = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'From the head of a request to the end of its answer, by operation, face and status',
    labelNames: ['operation', 'face', 'status'],
    buckets: DURATION_BUCKETS,
    registers: [registry],
  });
  const children = new Map<string, Histogram.Internal<string>>();
  return ({ operation, face, status, seconds }) => {
    const name = `${operation} ${face} ${status}`;
    let child = children.get(name);
    if (child === undefined) {
      child = histogram.labels({ operation, face, status });
      children.set(name, child);
    }
    child.observe(seconds);
  };
}

/** Counted in plain numbers, and handed to prom-client when it is scraped: every request passes here. */
function createDecisionCount(registry: Registry, limiter: Limiter): Metrics['countDecision'] {
  const zero = () => ({ admitted: 0, rate_limit_exceeded: 0, api_key_banned: 0 });
  const counts = { memory: zero(), redis: zero(), degraded: zero() };
  new Counter({
    name: 'limiter_decisions_total',
    help: 'Decisions of the limiter by outcome and by the store that decided; a batch is one decision',
    labelNames: ['outcome', 'store'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [store, outcomes] of Object.entries(counts)) {
        for (const [outcome, count] of Object.entries(outcomes)) this.inc({ outcome, store }, count);
      }
    },
  });
  return (code) => {
    counts[limiter.state][code ?? 'admitted'] += 1;
  };
}

function addPool(registry: Registry, pool: PoolUse | undefined): void {
  if (pool === undefined) return;
  const add = (name: string, help: string, read: () => number) =>
    addGauge(registry, `database_pool_${name}`, help, read);
  add('connections', 'Connections to the database', () => pool.totalCount);
  add('idle_connections', 'Connections to the database that nothing uses', () => pool.idleCount);
  add('waiting_queries', 'Queries that wait for a connection', () => pool.waitingCount);
}

function addStates(registry: Registry, { limiter, load, checkDatabase }: Sources): void {
  const isReady = () =>
    checkDatabase().then(
      () => 1,
      () => 0,
    );
  addGauge(registry, 'limits_degraded', '1 while limits are counted without their Redis', () =>
    Number(limiter.state === 'degraded'),
  );
  addGauge(registry, 'database_ready', '1 while the database can be used', isReady);
  addGauge(registry, 'service_overloaded', '1 while requests are refused for overload', () =>
    Number(load.reason !== undefined),
  );
}

function addGauge(registry: Registry, name: string, help: string, read: () => number | Promise<number>) {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      this.set(await read());
    },
  });
}

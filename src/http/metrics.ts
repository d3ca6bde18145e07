import type { FastifyInstance } from 'fastify';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { PoolStatistics } from '../database/client.js';
import type { ErrorCode } from '../errors.js';
import type { Limiter } from '../limits/limiter.js';
import type { Protocol } from '../protocol.js';
import type { OverloadMonitor } from './overload.js';

/** In seconds: from a lookup in a warm database to the wait of a client while the database is unavailable. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export interface MetricsOptions {
  readonly limiter: Limiter;
  /** Exported if given */
  readonly pool?: PoolStatistics;
  /** Names this process among several that share the port. */
  readonly worker?: number;
}

interface Sources extends MetricsOptions {
  readonly overload: OverloadMonitor;
  readonly checkReadiness: () => Promise<void>;
}

/** A finished request, as metrics and logs see it. Every label has few values, whatever clients send. */
export interface RequestReport {
  /** A name from the router, `batch` for several at once, or `unknown` */
  readonly operation: string;
  readonly protocol: Protocol | 'other';
  /** 499 when the client left before the response */
  readonly status: number;
  readonly seconds: number;
}

export interface Metrics {
  readonly registry: Registry;
  countRequest(report: RequestReport): void;
  /** Counts a decision of the limiter: the code of a denial, undefined when the request was admitted. */
  countDecision(code: ErrorCode | undefined): void;
}

/**
 * The metrics of one process, in a registry of their own. With several workers a scrape reaches any one of them; the
 * label `worker` tells which, so that no series mixes two.
 */
export function createMetrics(sources: Sources): Metrics {
  const registry = new Registry();
  if (sources.worker !== undefined) registry.setDefaultLabels({ worker: String(sources.worker) });
  collectDefaultMetrics({ register: registry });
  addPool(registry, sources.pool);
  addStates(registry, sources);
  return {
    registry,
    countRequest: createRequestCounter(registry),
    countDecision: createDecisionCounter(registry, sources.limiter),
  };
}

/** `GET /metrics`, in Prometheus' text format. */
export function registerMetrics(app: FastifyInstance, { registry }: Metrics): void {
  app.get('/metrics', { config: { isProbe: true } }, async (_request, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()),
  );
}

/** Each combination of labels is resolved once and kept, which is safe because there are few. */
function createRequestCounter(registry: Registry): Metrics['countRequest'] {
  const histogram = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'From the head of a request to the end of its response, by operation, protocol and status',
    labelNames: ['operation', 'protocol', 'status'],
    buckets: DURATION_BUCKETS,
    registers: [registry],
  });
  const children = new Map<string, Histogram.Internal<string>>();
  return ({ operation, protocol, status, seconds }) => {
    const name = `${operation} ${protocol} ${status}`;
    let child = children.get(name);
    if (child === undefined) {
      child = histogram.labels({ operation, protocol, status });
      children.set(name, child);
    }
    child.observe(seconds);
  };
}

const OUTCOMES = ['admitted', 'rate_limit_exceeded', 'api_key_banned'] as const satisfies (
  | ErrorCode
  | 'admitted'
)[];

/** Every request passes here, so it increments plain numbers, which prom-client collects on each scrape. */
function createDecisionCounter(registry: Registry, limiter: Limiter): Metrics['countDecision'] {
  const zeros = () => new Map<string, number>(OUTCOMES.map((outcome) => [outcome, 0]));
  const counts = new Map(['memory', 'redis', 'degraded'].map((store) => [store, zeros()]));
  new Counter({
    name: 'limiter_decisions_total',
    help: 'Decisions of the limiter by outcome and by the store that decided; a batch is one decision',
    labelNames: ['outcome', 'store'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [store, outcomes] of counts) {
        for (const [outcome, count] of outcomes) this.inc({ outcome, store }, count);
      }
    },
  });
  return (code) => {
    const outcomes = counts.get(limiter.state) ?? zeros();
    counts.set(limiter.state, outcomes);
    const outcome = code ?? 'admitted';
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  };
}

function addPool(registry: Registry, pool: PoolStatistics | undefined): void {
  if (pool === undefined) return;
  const add = (name: string, help: string, read: () => number) =>
    addGauge(registry, `database_pool_${name}`, help, read);
  add('connections', 'Connections to the database', () => pool.totalCount);
  add('idle_connections', 'Connections to the database that nothing uses', () => pool.idleCount);
  add('waiting_queries', 'Queries that wait for a connection', () => pool.waitingCount);
}

function addStates(registry: Registry, { limiter, overload, checkReadiness }: Sources): void {
  const isReady = () =>
    checkReadiness().then(
      () => 1,
      () => 0,
    );
  addGauge(registry, 'limits_degraded', '1 while limits are counted without Redis', () =>
    Number(limiter.state === 'degraded'),
  );
  addGauge(registry, 'database_ready', '1 while the database can be used', isReady);
  addGauge(registry, 'service_overloaded', '1 while requests get a 503 for overload', () =>
    Number(overload.reason !== undefined),
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

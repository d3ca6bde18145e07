import type { Server } from 'node:net';
import { promisify } from 'node:util';
import { Counter, collectDefaultMetrics, Gauge, type Histogram, Registry } from 'prom-client';
import { createDurations } from '../batching/durations.js';
import { PLAN_NAMES, type Plan } from '../contract/plans.js';
import type { Protocol } from '../contract/protocol.js';
import { VERSION } from '../contract/version.js';
import type { ErrorCode } from '../errors/api-error.js';
import type { Limiter } from '../limits/limiter.js';
import { OVERLOAD_REASONS, type OverloadMonitor } from '../server/overload.js';
import { addKeyMetrics, type KeyMetricsOptions } from './key-metrics.js';

/** The current use of the connections to the database. */
interface PoolStatistics {
  readonly totalCount: number;
  readonly idleCount: number;
  /** Queries that wait for a connection, or for the query before them on theirs */
  readonly waitingCount: number;
}

export interface MetricsOptions extends KeyMetricsOptions {
  readonly limiter: Limiter;
  /** Resolves when the database responds and has the schema that this service was built for. */
  readonly checkReadiness: () => Promise<void>;
  readonly pool: PoolStatistics;
  /** How long PostgreSQL and Redis took, measured where they are called */
  readonly durations: readonly Histogram[];
}

interface Sources extends MetricsOptions {
  readonly server: Server;
  readonly overload: OverloadMonitor;
}

/** A finished request, as metrics and logs see it. Every label has few values, whatever clients send. */
export interface RequestReport {
  /** A name from the router, `batch` for several at once, or `unknown` */
  readonly operation: string;
  readonly protocol: Protocol | 'other';
  /** 499 when the client reset its connection before the response */
  readonly status: number;
  readonly seconds: number;
}

export type Metrics = Readonly<ReturnType<typeof createMetrics>>;

/** The metrics of this process, in a registry of their own. */
export function createMetrics(sources: Sources) {
  const registry = createProcessRegistry();
  addPool(registry, sources.pool);
  addStates(registry, sources);
  addConnections(registry, sources.server);
  addKeyMetrics(registry, sources);
  const requests = createDurations(
    'animal_store_http_request_duration_seconds',
    'From the head of a request to the end of its response, by operation, protocol and status',
    ['operation', 'protocol', 'status'],
  );
  for (const histogram of [requests.histogram, ...sources.durations]) registry.registerMetric(histogram);
  return {
    registry,
    countRequest: ({ operation, protocol, status, seconds }: RequestReport) =>
      requests.observe(seconds, operation, protocol, String(status)),
    countDecision: createDecisionCounter(registry, sources.limiter),
  };
}

/** The version, memory, event loop and garbage collection. */
function createProcessRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'animal_store_build_info',
    help: 'Always 1; the version of the service and of Node.js',
    labelNames: ['version', 'node_version'],
    registers: [registry],
  }).set({ version: VERSION, node_version: process.version }, 1);
  return registry;
}

/** In place of a plan, for requests without a valid key */
const ANONYMOUS = 'anonymous';

function createDecisionCounter(registry: Registry, limiter: Limiter) {
  const counter = new Counter({
    name: 'animal_store_limiter_decisions_total',
    help: 'Decisions of the limiter by outcome, store that decided, and plan; a batch is one decision',
    labelNames: ['outcome', 'store', 'plan'],
    registers: [registry],
  });
  // Series start at 0, because Prometheus does not see the first increment of one that starts at 1.
  for (const store of ['memory', 'redis', 'degraded']) {
    for (const plan of [...PLAN_NAMES, ANONYMOUS]) {
      for (const outcome of ['admitted', 'rate_limit_exceeded', 'api_key_banned']) {
        counter.inc({ outcome, store, plan }, 0);
      }
    }
  }
  /**
   * Counts a decision of the limiter: the code of a denial, undefined when the request was admitted, and the plan of the
   * key, undefined when the request was counted against its address.
   */
  return (code: ErrorCode | undefined, plan: Plan | undefined) =>
    counter.inc({ outcome: code ?? 'admitted', store: limiter.state, plan: plan ?? ANONYMOUS });
}

function addPool(registry: Registry, pool: PoolStatistics): void {
  const add = (name: string, help: string, read: () => number) =>
    addGauge(registry, `animal_store_database_pool_${name}`, help, read);
  add('connections', 'Connections to the database', () => pool.totalCount);
  add('idle_connections', 'Connections to the database that nothing uses', () => pool.idleCount);
  add('waiting_queries', 'Queries that wait for a connection', () => pool.waitingCount);
}

function addStates(registry: Registry, { limiter, overload, checkReadiness }: Sources): void {
  const isDegraded = () => Number(limiter.state === 'degraded');
  const isReady = () =>
    checkReadiness()
      .then(() => 1)
      .catch(() => 0);
  addGauge(registry, 'animal_store_limits_degraded', '1 while limits are counted without Redis', isDegraded);
  addGauge(registry, 'animal_store_database_ready', '1 while the database can be used', isReady);
  new Gauge({
    name: 'animal_store_service_overloaded',
    help: '1 while the process is overloaded: requests get a 503, with the reason queue only some',
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      for (const reason of OVERLOAD_REASONS) this.set({ reason }, Number(overload.reason === reason));
    },
  });
}

function addConnections(registry: Registry, server: Server): void {
  const accepted = new Counter({
    name: 'animal_store_http_connections_accepted_total',
    help: 'Connections accepted from clients',
    registers: [registry],
  });
  server.on('connection', () => accepted.inc());
  const countConnections = promisify(server.getConnections).bind(server);
  addGauge(registry, 'animal_store_http_connections', 'Connections of clients', countConnections);
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

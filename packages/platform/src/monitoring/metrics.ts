import type { Limiter } from '@animal-store/limits';
import { Counter, collectDefaultMetrics, Gauge, type Histogram, Registry } from 'prom-client';
import type { Protocol } from '../contract/protocol.js';
import { readVersion } from '../contract/version.js';
import { createDurations } from './durations.js';
import { addGauges, type GaugeSources } from './gauges.js';

export interface MetricsOptions extends GaugeSources {
  /** How long PostgreSQL and Redis took, measured where they are called */
  readonly durations: readonly Histogram[];
  /** What is counted elsewhere, such as lines of the log that are lost */
  readonly counters: readonly Counter[];
}

/** A finished request, as metrics and logs see it. Every label has few values, whatever clients send. */
export interface RequestReport {
  /** A name from the router, `batch` for a batch of different ones, or `unknown` */
  readonly operation: string;
  readonly protocol: Protocol | 'other';
  /** The status of the response, or of the error in it if a call failed; 499 if the client reset its connection before */
  readonly status: number;
  readonly seconds: number;
  /** Whether the client asked for the error */
  readonly isRehearsed: boolean;
}

export type Metrics = Readonly<ReturnType<typeof createMetrics>>;

/** The metrics of this process, in a registry of their own. */
export function createMetrics(sources: MetricsOptions) {
  const { identity, plans, root } = sources.definition;
  const prefix = identity.metricsPrefix;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: `${prefix}build_info`,
    help: 'Always 1; the version of the service and of Node.js',
    labelNames: ['version', 'node_version'],
    registers: [registry],
  }).set({ version: readVersion(root), node_version: process.version }, 1);
  addGauges(registry, sources);
  const accepted = new Counter({
    name: `${prefix}http_connections_accepted_total`,
    help: 'Connections accepted from clients',
    registers: [registry],
  });
  sources.server.on('connection', () => accepted.inc());
  const requests = createDurations(
    `${prefix}http_request_duration_seconds`,
    'From the head of a request to the end of its response, by operation, protocol and status; errors that clients rehearse have a label',
    ['operation', 'protocol', 'status', 'rehearsed'],
  );
  for (const metric of [requests, ...sources.durations, ...sources.counters]) registry.registerMetric(metric);
  return {
    registry,
    countRequest: ({ operation, protocol, status, seconds, isRehearsed }: RequestReport) =>
      requests.observe({ operation, protocol, status, ...(isRehearsed && { rehearsed: 'true' }) }, seconds),
    countDecision: createDecisionCounter(registry, prefix, Object.keys(plans), sources.limiter),
  };
}

/** In place of a plan, for requests without a valid key */
const ANONYMOUS = 'anonymous';

function createDecisionCounter(
  registry: Registry,
  prefix: string,
  plans: readonly string[],
  limiter: Limiter,
) {
  const counter = new Counter({
    name: `${prefix}limiter_decisions_total`,
    help: 'Decisions of the limiter by outcome, store that decided, and plan; a batch is one decision',
    labelNames: ['outcome', 'store', 'plan'],
    registers: [registry],
  });
  // Series start at 0, because Prometheus does not see the first increment of a series that starts at 1.
  for (const store of ['memory', 'redis', 'degraded']) {
    for (const plan of [...plans, ANONYMOUS]) {
      for (const outcome of ['admitted', 'rate_limit_exceeded', 'api_key_banned']) {
        counter.inc({ outcome, store, plan }, 0);
      }
    }
  }
  /** Counts a decision: the code if it was a denial, and the plan of the key, unless an address was counted. */
  return (code: string | undefined, plan: string | undefined) =>
    counter.inc({ outcome: code ?? 'admitted', store: limiter.state, plan: plan ?? ANONYMOUS });
}

import type { Server } from 'node:net';
import { promisify } from 'node:util';
import { OVERLOAD_REASONS, type OverloadMonitor } from '@animal-store/http-server';
import type { Limiter } from '@animal-store/limits';
import { Gauge, type Registry } from 'prom-client';
import type { Definition } from '../definition/definition.js';
import { createCachedCheck, type Readiness } from './readiness.js';

/** How many keys there are by plan, without revoked keys. Plans without keys are left out. */
type KeyCounts = ReadonlyMap<string, number>;

/** What the gauges read */
export interface GaugeSources {
  readonly definition: Pick<Definition, 'identity' | 'plans' | 'root'>;
  readonly limiter: Limiter;
  readonly server: Server;
  readonly overload: OverloadMonitor;
  readonly readiness: Pick<Readiness, 'check'>;
  /** Connections to the database, or queries that wait for one */
  readonly countConnections: (kind: 'totalCount' | 'idleCount' | 'waitingCount') => number;
  /** The keys that are banned now, and the keys that expire soon. May fail with a database error */
  readonly countKeys: () => Promise<{ readonly banned: KeyCounts; readonly expiring: KeyCounts }>;
  readonly usage: {
    /** How many counts are not stored yet */
    readonly waiting: number;
    /** How many requests were not counted */
    readonly dropped: number;
    /** For how many keys this process has lately denied more than half of the requests */
    readonly mostlyDenied: number;
  };
}

/** One number, or one for each value of a label */
type Reading = number | Iterable<readonly [value: string, number]>;

/** What is read at each scrape. */
export function addGauges(registry: Registry, sources: GaugeSources): void {
  const { countConnections, limiter, overload, server, usage, readiness } = sources;
  const add = (name: string, help: string, read: () => Reading | Promise<Reading>, label = '') =>
    new Gauge({
      name: sources.definition.identity.metricsPrefix + name,
      help,
      labelNames: [label].filter(Boolean),
      registers: [registry],
      async collect() {
        const reading = await read();
        if (typeof reading === 'number') return this.set(reading);
        this.reset();
        for (const [value, number] of reading) this.set({ [label]: value }, number);
      },
    });
  add('database_pool_connections', 'Connections to the database', () => countConnections('totalCount'));
  add('database_pool_idle_connections', 'Connections to the database that nothing uses', () =>
    countConnections('idleCount'),
  );
  add('database_pool_waiting_queries', 'Queries that wait for a connection', () =>
    countConnections('waitingCount'),
  );
  const isReady = () =>
    readiness
      .check()
      .then(() => 1)
      .catch(() => 0);
  add('database_ready', '1 while the database can be used', isReady);
  const isDegraded = () => Number(limiter.state === 'degraded');
  add('limits_degraded', '1 while limits are counted without Redis', isDegraded);
  add('http_connections', 'Connections of clients', promisify(server.getConnections).bind(server));
  add(
    'service_overloaded',
    '1 while the process is overloaded: requests get a 503, with the reason queue only some',
    () => OVERLOAD_REASONS.map((reason) => [reason, Number(overload.reason === reason)]),
    'reason',
  );
  const waitingHelp = 'Counts of usage that are not stored yet';
  add('api_key_usage_waiting', waitingHelp, () => usage.waiting);
  const droppedHelp = 'Requests that usage does not count, because too many counts could not be stored';
  add('api_key_usage_dropped', droppedHelp, () => usage.dropped);
  add(
    'api_keys_mostly_denied',
    'Keys more than half of whose requests to this process were denied between the last two times that it stored usage',
    () => usage.mostlyDenied,
  );
  const read = createKeyCountReader(sources);
  const everyNode = 'Every node reports the same numbers: do not sum over nodes';
  add('api_keys_banned', `Keys that are banned now, by any node. ${everyNode}`, () => read('banned'), 'plan');
  const expiringHelp = `Keys that expire within seven days. ${everyNode}`;
  add('api_keys_expiring', expiringHelp, () => read('expiring'), 'plan');
}

/**
 * Keys are counted in the database, because one node knows only those that it has served. The queries are shared and
 * bounded like a readiness check. While they fail there is no series, since nobody knows the numbers.
 */
function createKeyCountReader({ definition, countKeys }: GaugeSources) {
  let counts: Awaited<ReturnType<typeof countKeys>>;
  const refresh = createCachedCheck(async () => {
    counts = await countKeys();
  });
  return (kind: keyof typeof counts): Promise<Reading> =>
    refresh().then(
      () => Object.keys(definition.plans).map((plan) => [plan, counts[kind].get(plan) ?? 0]),
      () => [],
    );
}

import { randomUUID } from 'node:crypto';
import { canStartRedis, type RedisServer, until } from '@animal-store/limits/testing';
import { afterEach, describe, expect, test } from 'vitest';
import {
  closeAll,
  consumeDuring,
  consumeMany,
  countAllowed,
  type Node,
  node,
  onClose,
  reaches,
  subject,
} from '../support/limiter-nodes.js';
import { startCluster } from '../support/redis-cluster.js';
import { startSentinels } from '../support/redis-sentinel.js';

const hasRedis = canStartRedis();

afterEach(closeAll);

/** How many requests of a new caller two nodes allow together; undefined while Redis does not decide on each of them. */
async function spendLimit(nodes: readonly Node[]): Promise<number | undefined> {
  const [id, before] = [randomUUID(), nodes.map(({ logged }) => logged.length)];
  const results = await Promise.all(nodes.map(({ limiter }) => consumeMany(limiter, 50, { ...subject, id })));
  const isUndisturbed = nodes.every(
    ({ limiter, logged }, index) => limiter.state === 'redis' && logged.length === before[index],
  );
  return isUndisturbed ? countAllowed(results.flat()) : undefined;
}

/** Long enough that a limiter replaces its connections twice meanwhile */
const OUTAGE_MS = 4_000;

interface Deployment {
  readonly urls: string[];
  readonly servers: readonly RedisServer[];
}

const DEPLOYMENTS: { readonly what: string; readonly start: () => Promise<Deployment> }[] = [
  {
    what: 'a cluster',
    async start() {
      const cluster = await startCluster({ shards: 3 });
      onClose(() => cluster.close());
      return { urls: cluster.servers.map(({ url }) => url), servers: cluster.servers };
    },
  },
  {
    what: 'a primary, its replica and their Sentinels',
    async start() {
      const setup = await startSentinels();
      onClose(() => setup.close());
      return { urls: [setup.url], servers: [setup.primary, setup.replica, ...setup.sentinels] };
    },
  },
];

const FAULTS = [
  {
    fault: 'killed',
    begin: (servers: readonly RedisServer[]) => Promise.all(servers.map((each) => each.kill())),
    end: (servers: readonly RedisServer[]) => Promise.all(servers.map((each) => each.run())),
  },
  {
    fault: 'stalled',
    begin: async (servers: readonly RedisServer[]) => servers.map((each) => each.stall()),
    end: async (servers: readonly RedisServer[]) => servers.map((each) => each.resume()),
  },
];

/** Whether requests arrive during the outage: only then does anybody notice it. */
const CALLERS = [
  { callers: 'many calls', during: consumeDuring },
  {
    callers: 'no calls',
    during: (_nodes: readonly Node[], _of: unknown, work: () => Promise<unknown>) => work(),
  },
];

const EVERY = DEPLOYMENTS.flatMap((deployment) =>
  FAULTS.flatMap((fault) => CALLERS.map((callers) => ({ ...deployment, ...fault, ...callers }))),
);
// A stall that ends before anybody calls leaves nothing to come back from.
const CASES = EVERY.filter(({ fault, callers }) => fault === 'killed' || callers === 'many calls');

describe.skipIf(!hasRedis)('away as a whole', () => {
  test.each(CASES)(
    '$what, $fault for 4 s with $callers: counts again once it is back, exactly the limit over two nodes',
    async ({ start, begin, end, during }) => {
      const { urls, servers } = await start();
      const nodes = await Promise.all([node(urls), node(urls)]);
      await during(nodes, subject, async () => {
        await begin(servers);
        await new Promise((resolve) => setTimeout(resolve, OUTAGE_MS));
        await end(servers);
      });
      expect(await until(() => spendLimit(nodes))).toBe(60);
    },
  );

  test.each(DEPLOYMENTS)('$what, at the start: counts once it is there', async ({ start }) => {
    const { urls, servers } = await start();
    await Promise.all(servers.map((each) => each.kill()));
    const nodes = await Promise.all([node(urls, false), node(urls, false)]);
    await consumeDuring(nodes, subject, async () => {
      await new Promise((resolve) => setTimeout(resolve, OUTAGE_MS));
      await Promise.all(servers.map((each) => each.run()));
    });
    await Promise.all(nodes.map(({ limiter }) => reaches(limiter, 'redis')));
  });
});

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { openEmbedded } from '@animal-store/embedded-postgres';
import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { applyMigrations } from '../src/database/migrations.js';
import { createLimiter, type Limiter } from '../src/limits/limiter.js';
import { findRedis } from '../test/support/redis.js';
import { createTemporaryFolder } from '../test/support/temporary-folder.js';
import { median, printTable } from './table.js';

const ROUNDS = 5;
const DECISIONS = 20_000;
/** Decisions under way at once, as many as a busy node has */
const CONCURRENCY = 64;
const KEYS = 1_000;
const REQUESTS = 6_000;
const SOCKETS = 32;

const PLENTY = { perMinute: 1_000_000_000, perDay: 1_000_000_000 };
/** Refused by the day from the second request on, and never banned */
const SPENT = { perMinute: 1_000_000_000, perDay: 1 };

type Decide = (n: number) => unknown;

/** What a decision costs, next to the plain use of the same library and to the least that Redis can be asked. */
export async function benchLimits(): Promise<void> {
  const redis = await findRedis();
  if (redis === null) throw new Error('This measurement needs a Redis: see the README');
  await benchDecisions(redis.url);
  await benchAnswers();
  await redis.close();
}

async function benchDecisions(redisUrl: string): Promise<void> {
  const prefix = `bench:${process.pid}`;
  const log = { info() {}, warn() {} };
  const inMemory = createLimiter({ redisUrls: [], log, prefix });
  const inRedis = createLimiter({ redisUrls: [redisUrl], log, prefix });
  while (inRedis.state !== 'redis') await new Promise((resolve) => setTimeout(resolve, 10));
  const storeClient = new Redis(redisUrl, { enableAutoPipelining: true });
  const plain = [60, 86_400].map(
    (duration) =>
      new RateLimiterRedis({ storeClient, keyPrefix: `${prefix}:plain${duration}`, points: 1e9, duration }),
  );
  storeClient.defineCommand('bare', {
    numberOfKeys: 1,
    lua: `local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('pexpire', KEYS[1], 60000) end return n`,
  });
  const bare = (storeClient as unknown as { bare(key: string): Promise<number> }).bare.bind(storeClient);

  await measure({
    'memory, admitted': (n) => inMemory.take(subject(n, PLENTY), 1),
    'memory, refused': (n) => inMemory.take(subject(n, SPENT), 1),
    'Redis, admitted': (n) => inRedis.take(subject(n, PLENTY), 1),
    'Redis, refused': (n) => inRedis.take(subject(n, SPENT), 1),
    'two plain RateLimiterRedis': (n) => Promise.all(plain.map((limiter) => limiter.consume(`${n % KEYS}`))),
    'one bare Lua call': (n) => bare(`${prefix}:bare:${n % KEYS}`),
  });
  const keys = await storeClient.keys(`${prefix}*`);
  if (keys.length > 0) await storeClient.del(...keys);
  storeClient.disconnect();
  await Promise.all([inMemory.close(), inRedis.close()]);
}

function subject(n: number, limits: { perMinute: number; perDay: number }): Parameters<Limiter['take']>[0] {
  return { kind: 'key', id: `${limits.perDay}-${n % KEYS}`, limits };
}

/** Rounds of all cases in turn, so that a drift of the machine hits all alike. */
async function measure(cases: Readonly<Record<string, Decide>>): Promise<void> {
  const names = Object.keys(cases);
  const rates = new Map<string, number[]>(names.map((name) => [name, []]));
  const costs = new Map<string, number[]>(names.map((name) => [name, []]));
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const [name, decide] of Object.entries(cases)) {
      const { perSecond, cpuMicroseconds } = await time(decide);
      // The first round warms up.
      if (round < 0) continue;
      rates.get(name)?.push(perSecond);
      costs.get(name)?.push(cpuMicroseconds);
    }
  }
  const base = median(costs.get('one bare Lua call') ?? []);
  printTable(
    ['decision', 'per second', 'µs of CPU', 'times a bare Lua call'],
    names.map((name) => {
      const cost = median(costs.get(name) ?? []);
      return [
        name,
        Math.round(median(rates.get(name) ?? [])),
        Number(cost.toFixed(1)),
        Number((cost / base).toFixed(2)),
      ];
    }),
  );
}

async function time(decide: Decide) {
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  let next = 0;
  const work = async () => {
    while (next < DECISIONS) {
      next += 1;
      await decide(next);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { perSecond: DECISIONS / seconds, cpuMicroseconds: (user + system) / DECISIONS };
}

/** What a refused request costs the service, next to an admitted one. */
async function benchAnswers(): Promise<void> {
  const dataDir = await createTemporaryFolder();
  const postgres = await openEmbedded({ dataDir, role: 'guest', log: () => {} });
  await applyMigrations(postgres.url);
  const service = fork(new URL('./service.ts', import.meta.url), {
    env: { ...process.env, DATABASE_URL: postgres.url },
  });
  const [{ port, admitted, refused }] = (await once(service, 'message')) as [Record<string, string>];
  const readCpu = async () => {
    service.send('cpu');
    const [microseconds] = await once(service, 'message');
    return microseconds as number;
  };
  const costs = { admitted: [] as number[], refused: [] as number[] };
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const [name, key, status] of [
      ['admitted', admitted, 200],
      ['refused', refused, 429],
    ] as const) {
      const before = await readCpu();
      await load(`http://127.0.0.1:${port}/v1/pets`, key ?? '', status);
      if (round >= 0) costs[name].push(((await readCpu()) - before) / REQUESTS);
    }
  }
  const base = median(costs.admitted);
  printTable(
    ['GET /v1/pets', 'µs of CPU in the service', 'of an admitted one'],
    Object.entries(costs).map(([name, values]) => [
      name,
      Math.round(median(values)),
      Number((median(values) / base).toFixed(2)),
    ]),
  );
  service.kill();
  await once(service, 'exit');
  await postgres.release();
  await rm(dataDir, { recursive: true, force: true });
}

async function load(url: string, key: string, expectedStatus: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: SOCKETS });
  const headers = { authorization: `Bearer ${key}` };
  let sent = 0;
  const work = async () => {
    while (sent < REQUESTS) {
      sent += 1;
      const status = await new Promise((resolve, reject) => {
        request(url, { agent, headers }, (response) =>
          response.resume().on('end', () => resolve(response.statusCode)),
        )
          .on('error', reject)
          .end();
      });
      // Each key is admitted once before it is spent.
      if (status !== expectedStatus && sent > SOCKETS * 2)
        throw new Error(`answered ${status}, not ${expectedStatus}`);
    }
  };
  await Promise.all(Array.from({ length: SOCKETS }, work));
  agent.destroy();
}

import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { startRedis } from '../test/support/redis.js';
import { openLimiter } from './open-limiter.js';
import { readNumber } from './option-values.js';
import { median, printTable } from './table.js';

const OPTIONS = {
  rounds: { type: 'string', default: '5' },
  /** That take turns */
  keys: { type: 'string', default: '256' },
} as const;

const DECISIONS = 20_000;
/** Decisions in flight at once, as on a busy node */
const CONCURRENCY = 64;

const UNLIMITED = { perMinute: 1_000_000_000, perDay: 1_000_000_000 };
/** Denied by the window of a day from the second request on, and never banned */
const EXHAUSTED = { perMinute: 1_000_000_000, perDay: 1 };

const BARE_CALL = 'one bare Lua call';
const BARE_SCRIPT = `
local n = redis.call('incr', KEYS[1])
if n == 1 then redis.call('pexpire', KEYS[1], 60000) end
return n`;

type Decide = (n: number) => unknown;

/** The cost of one decision, compared with plain use of the library and with the simplest call to Redis. */
export async function benchLimits(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const keys = readNumber('keys', values.keys);
  const redis = await startRedis();
  if (redis === undefined) throw new Error('This measurement needs a Redis: see the README');
  const inMemory = await openLimiter();
  const inRedis = await openLimiter(redis.url);
  const client = new Redis(redis.url, { enableAutoPipelining: true });
  const plain = [60, 86_400].map(
    (duration) =>
      new RateLimiterRedis({ storeClient: client, keyPrefix: `${duration}`, points: 1e9, duration }),
  );
  client.defineCommand('bare', { numberOfKeys: 1, lua: BARE_SCRIPT });
  const bareCall = (client as unknown as { bare(key: string): Promise<number> }).bare.bind(client);

  await compareDecisions(`decision, ${keys} keys`, readNumber('rounds', values.rounds), {
    'memory, admitted': (n) => inMemory.consume(`unlimited-${n % keys}`, UNLIMITED),
    'memory, denied': (n) => inMemory.consume(`exhausted-${n % keys}`, EXHAUSTED),
    'Redis, admitted': (n) => inRedis.consume(`unlimited-${n % keys}`, UNLIMITED),
    'Redis, denied': (n) => inRedis.consume(`exhausted-${n % keys}`, EXHAUSTED),
    'two plain RateLimiterRedis': (n) => Promise.all(plain.map((limiter) => limiter.consume(`${n % keys}`))),
    [BARE_CALL]: (n) => bareCall(`bare:${n % keys}`),
  });

  client.disconnect();
  await Promise.all([inMemory.close(), inRedis.close(), redis.close()]);
}

/** Every round measures all cases, so that a change in the machine's speed affects them alike. The first warms up. */
async function compareDecisions(title: string, rounds: number, cases: Readonly<Record<string, Decide>>) {
  const costs = new Map<string, Awaited<ReturnType<typeof timeDecisions>>[]>(
    Object.keys(cases).map((name) => [name, []]),
  );
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, decide] of Object.entries(cases)) {
      const cost = await timeDecisions(decide);
      if (round > 0) costs.get(name)?.push(cost);
    }
  }
  const bareCosts = costs.get(BARE_CALL) ?? [];
  printTable({
    headings: [title, 'per second', 'µs of CPU', 'times a bare Lua call'],
    rows: [...costs].map(([name, samples]) => [
      name,
      Math.round(median(samples.map(({ perSecond }) => perSecond))),
      median(samples.map(({ cpu }) => cpu)).toFixed(1),
      median(samples.map(({ cpu }, round) => cpu / (bareCosts[round]?.cpu ?? Number.NaN))).toFixed(2),
    ]),
  });
}

async function timeDecisions(decide: Decide) {
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  let started = 0;
  const work = async () => {
    while (started < DECISIONS) {
      started += 1;
      await decide(started);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { perSecond: DECISIONS / seconds, cpu: (user + system) / DECISIONS };
}

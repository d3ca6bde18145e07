import { afterEach, expect, test, vi } from 'vitest';
import { runKeys } from '../support/process.js';
import { hasPrometheus, startPrometheus } from '../support/prometheus.js';
import { findRedis } from '../support/redis.js';
import { setUpServiceProcesses } from '../support/service-processes.js';
import { createCaller, createTestDatabase } from '../support/test-service.js';

const redis = await findRedis();
const testWithPrometheus = test.skipIf(redis === undefined || !hasPrometheus());
const { start } = setUpServiceProcesses();
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

vi.setConfig({ testTimeout: 90_000 });

const POLL = { timeout: 20_000, interval: 200 };
const COUNTS = 'http_request_duration_seconds_count{operation="listPets"}';

/** Two workers behind one port, and a Prometheus that scrapes them. */
async function startScrapedWorkers(environment: { METRICS_PORT?: string } = {}) {
  const DATABASE_URL = await createTestDatabase();
  const { key } = await runKeys({ DATABASE_URL }, 'create', '--name', 'x', '--plan', 'business');
  const shared = { DATABASE_URL, APP_ENV: 'staging', WORKERS: '2', REDIS_URL: redis?.url ?? '' };
  const service = start({ ...shared, ...environment });
  const [, pid = '', url = ''] = await service.until(
    /"pid":(\d+).*"listening on (http:[^"]+)"[\s\S]*"listening on/,
  );
  const [, metricsUrl = url] = /are on (http:[^"]+)"/.exec(service.output()) ?? [];
  const prometheus = await startPrometheus(new URL(metricsUrl).host);
  closers.push(() => prometheus.close());
  const call = createCaller({ url, key });
  return {
    service,
    pid: Number(pid),
    query: prometheus.query,
    /** Sends each request over a new connection: the workers take them in turn. */
    async listPets(count: number) {
      const options = { headers: { connection: 'close' } };
      for (let sent = 0; sent < count; sent += 1) expect((await call('/v1/pets', options)).status).toBe(200);
    },
  };
}

testWithPrometheus(
  'Prometheus counts every request of all workers, though it keeps one connection',
  async () => {
    const { query, listPets } = await startScrapedWorkers();
    await listPets(262);
    await expect.poll(() => query(`sum(${COUNTS})`), POLL).toEqual({ '': 262 });
    expect(Object.keys(await query(`sum by (worker) (${COUNTS})`)).sort()).toEqual(['worker=1', 'worker=2']);
    expect(await query('sum(worker_up)')).toEqual({ '': 2 });
  },
);

testWithPrometheus('a worker that is replaced resets its own series only, and no scrape fails', async () => {
  const { service, pid, query, listPets } = await startScrapedWorkers({ METRICS_PORT: '0' });
  await listPets(100);
  await expect.poll(() => query(`sum(${COUNTS})`), POLL).toEqual({ '': 100 });
  const before = Object.values(await query(`sum by (worker) (${COUNTS})`));
  process.kill(pid, 'SIGKILL');
  await service.until(/worker \d+ ended \(SIGKILL\)[\s\S]*"listening on/);
  await expect.poll(() => query('sum(worker_up)'), POLL).toEqual({ '': 2 });
  await listPets(10);
  // The other worker's count goes on.
  const expected = before.map((count) => count + 10);
  await expect.poll(async () => expected.includes((await query(`sum(${COUNTS})`))[''] ?? 0), POLL).toBe(true);
  expect(Object.values(await query(`resets(${COUNTS}[5m])`)).sort()).toEqual([0, 1]);
  expect(Object.values(await query('min_over_time(up[5m])'))).toEqual([1]);
});

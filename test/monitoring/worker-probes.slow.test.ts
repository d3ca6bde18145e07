import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { findRedis } from '../support/redis.js';
import { setUpServiceProcesses } from '../support/service-processes.js';
import { createTestDatabase } from '../support/test-service.js';

const redis = await findRedis();
const { start } = setUpServiceProcesses();

const PROBES = ['/metrics', '/health/live', '/health/ready'];
const POLL = { timeout: 20_000 };

vi.setConfig({ testTimeout: 60_000 });

/** Starts the service with a METRICS_PORT, and waits until each of its processes listens. */
async function startWithMetricsPort(workers: number) {
  const service = start({
    ...{ DATABASE_URL: await createTestDatabase(), APP_ENV: 'staging', METRICS_PORT: '0' },
    ...{ WORKERS: String(workers), REDIS_URL: redis?.url ?? '' },
  });
  const [, probesUrl = ''] = await service.until(/are on (http:[^"]+)"/);
  await service.until(new RegExp(`(?:"listening on [^]*){${workers}}`));
  const lines = [...service.output().matchAll(/"pid":(\d+).*"listening on (http:[^"]+)"/g)];
  const pids = lines.map(([, pid]) => Number(pid));
  return { service, url: lines[0]?.[2] ?? '', probesUrl, pids };
}

async function get(url: string) {
  const response = await fetch(url);
  return { status: response.status, text: await response.text() };
}

const readBody = async (url: string) => JSON.parse((await get(url)).text);

/** Stops a process without ending it, as when its event loop hangs; it goes on after the test at the latest. */
function stall(pid: number): void {
  process.kill(pid, 'SIGSTOP');
  onTestFinished(() => resume(pid));
}

function resume(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT');
  } catch {
    // It has ended.
  }
}

/** Each series of one metric by its worker. */
function byWorker(text: string, name: string): Record<string, number> {
  const series = text.matchAll(new RegExp(`^${name}\\{(?:.*,)?worker="(\\w+)"\\} (\\S+)$`, 'gm'));
  return Object.fromEntries([...series].map(([, worker, value]) => [worker, Number(value)]));
}

test.for([1, 2])(
  'METRICS_PORT moves metrics and health of %i process(es) to a port of their own',
  async (workers, { skip }) => {
    skip(redis === undefined && workers > 1, 'several processes need Redis');
    const { url, probesUrl } = await startWithMetricsPort(workers);
    expect(probesUrl).not.toBe(url);
    for (const path of PROBES) {
      expect([path, (await get(url + path)).status]).toEqual([path, 404]);
      expect([path, (await get(probesUrl + path)).status]).toEqual([path, 200]);
    }
    expect((await get(`${probesUrl}/v1/pets`)).status).toBe(404);
    expect(await readBody(`${probesUrl}/health/ready`)).toMatchObject({ status: 'ok', database: 'ok' });
  },
);

test.runIf(redis)(
  'one answer holds the series of every worker, and once what all have in common',
  async () => {
    const { probesUrl } = await startWithMetricsPort(2);
    const { text } = await get(`${probesUrl}/metrics`);
    for (const name of ['worker_up', 'database_ready', 'limits_degraded', 'service_overloaded'])
      expect(Object.keys(byWorker(text, name))).toEqual(['1', '2']);
    expect(Object.keys(byWorker(text, 'process_resident_memory_bytes'))).toEqual(['1', '2', 'primary']);
    expect(text.match(/^build_info\{version="[^"]+",node_version="[^"]+"\} 1$/gm)).toHaveLength(1);
    expect(text.match(/^api_keys_banned\{plan="free"\} 0$/gm)).toHaveLength(1);
    expect(text).toMatch(/^redis_command_duration_seconds_count\{worker="1"\} \d+$/m);
  },
);

test.runIf(redis)('a worker that stalls or dies fails neither a scrape nor a probe', async () => {
  const { probesUrl, pids } = await startWithMetricsPort(2);
  const [first = 0, second = 0] = pids;
  /** The statuses of all probes, and which workers have answered. */
  const probe = async () => {
    const [metrics, live, ready] = await Promise.all(PROBES.map((path) => get(probesUrl + path)));
    const up = Object.values(byWorker(metrics?.text ?? '', 'worker_up')).sort();
    return `${metrics?.status} ${live?.status} ${ready?.status}, up: ${up}`;
  };
  stall(first);
  const startedAt = performance.now();
  expect(await probe()).toBe('200 200 200, up: 0,1');
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  stall(second);
  expect(await probe()).toBe('200 503 503, up: 0,0');
  resume(second);
  const probed = probe();
  process.kill(first, 'SIGKILL');
  expect(await probed).toBe('200 200 200, up: 0,1');
  // The worker that replaces it takes over its label.
  await expect.poll(probe, POLL).toBe('200 200 200, up: 1,1');
});

test.for([1, 2])(
  'METRICS_PORT reports the shutdown of %i process(es) until all requests have finished',
  async (workers, { skip }) => {
    skip(redis === undefined && workers > 1, 'several processes need Redis');
    const { service, url, probesUrl } = await startWithMetricsPort(workers);
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write('GET /docs HTTP/1.1\r\n');
    await get(`${url}/docs`);
    service.child.kill('SIGTERM');
    const readStatus = async () => (await readBody(`${probesUrl}/health/ready`)).status;
    await expect.poll(readStatus, POLL).toBe('draining');
    expect((await get(`${probesUrl}/health/live`)).status).toBe(200);
    expect((await get(`${probesUrl}/metrics`)).status).toBe(200);
    socket.end('Host: x\r\n\r\n');
    expect(await service.ended).toBe(0);
    await expect(get(`${probesUrl}/metrics`)).rejects.toThrow();
  },
);

test('a METRICS_PORT that is in use stops the start with a message that names it', async () => {
  const blocker = createServer().listen(0, '127.0.0.1');
  await once(blocker, 'listening');
  onTestFinished(() => void blocker.close());
  const METRICS_PORT = String((blocker.address() as AddressInfo).port);
  const DATABASE_URL = await createTestDatabase();
  for (const WORKERS of redis ? ['1', '2'] : ['1']) {
    const service = start({ DATABASE_URL, METRICS_PORT, WORKERS, REDIS_URL: redis?.url ?? '' });
    expect(await service.ended).toBe(1);
    expect(service.output()).toContain(`METRICS_PORT ${METRICS_PORT} is in use on 127.0.0.1`);
  }
});

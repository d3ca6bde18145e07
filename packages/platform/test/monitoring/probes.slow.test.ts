import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { untilListening } from '@animal-store/platform/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { list } from '#operations-under-test';
import { setUpServiceProcesses } from '../support/service-processes.js';
import { createTestDatabase } from '../support/test-service.js';

const { start } = setUpServiceProcesses();

const PROBES = ['/metrics', '/health/live', '/health/ready'];
const POLL = { timeout: 20_000 };

vi.setConfig({ testTimeout: 60_000 });

async function startWithMetricsPort() {
  const service = start({ DATABASE_URL: await createTestDatabase(), APP_ENV: 'staging', METRICS_PORT: '0' });
  const [, probesUrl = ''] = await service.until(/are on (http:[^"]+)"/);
  return { service, url: await untilListening(service), probesUrl };
}

async function get(url: string) {
  const response = await fetch(url);
  return { status: response.status, text: await response.text() };
}

const readBody = async (url: string) => JSON.parse((await get(url)).text);

test('METRICS_PORT moves metrics and health to a port of their own', async () => {
  const { url, probesUrl } = await startWithMetricsPort();
  expect(probesUrl).not.toBe(url);
  for (const path of PROBES) {
    expect([path, (await get(url + path)).status]).toEqual([path, 404]);
    expect([path, (await get(probesUrl + path)).status]).toEqual([path, 200]);
  }
  expect((await get(`${probesUrl}${list.path}`)).status).toBe(404);
  expect(await readBody(`${probesUrl}/health/ready`)).toMatchObject({ status: 'ok', database: 'ok' });
});

test('METRICS_PORT reports the shutdown until all requests have finished', async () => {
  const { service, url, probesUrl } = await startWithMetricsPort();
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
});

test('a METRICS_PORT that is in use stops the start with a message that names it', async () => {
  const blocker = createServer().listen(0, '127.0.0.1');
  await once(blocker, 'listening');
  onTestFinished(() => void blocker.close());
  const METRICS_PORT = String((blocker.address() as AddressInfo).port);
  const DATABASE_URL = await createTestDatabase();
  const service = start({ DATABASE_URL, METRICS_PORT });
  expect(await service.ended).toBe(1);
  expect(service.output()).toContain(`METRICS_PORT ${METRICS_PORT} is in use on 127.0.0.1`);
});

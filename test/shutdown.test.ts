import { runCommand, untilListening } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { beginCreate } from '../packages/platform/test/support/begin-create.js';
import {
  setUpServiceProcesses,
  stop,
  untilReady,
} from '../packages/platform/test/support/service-processes.js';
import { startTcpProxy } from '../packages/platform/test/support/tcp-proxy.js';
import { list } from './support/operations-under-test.js';
import { createTestDatabase } from './support/service.js';

const processes = setUpServiceProcesses();
const { programs, start } = processes;

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s finishes running requests, accepts no new connections, and exits with 0',
  async (signal) => {
    const service = start();
    const { url, key, call } = await untilReady(service);
    const finishes = await Promise.all(Array.from({ length: 10 }, () => beginCreate(url, key)));
    await call(list.path);
    const exit = stop(service, signal);
    await service.until(/finishing running requests/);
    await expect.poll(() => call(list.path).catch(() => 'refused')).toBe('refused');
    expect(await Promise.all(finishes.map((finish) => finish()))).toEqual(Array(10).fill(201));
    expect(await exit).toBe(0);
  },
);

// Debian's sh stays between npm and the service, and would be the only one to get the signal without `exec`.
test('npm start forwards SIGTERM to the service, and exits with 0 after the service has', async () => {
  const npm = runCommand('npm', ['start'], { DATA_DIR: processes.dataDir, PORT: '0' });
  programs.push(npm);
  const { call } = await untilReady(npm);
  expect(await stop(npm)).toBe(0);
  await expect(call('/health/live')).rejects.toThrow();
});

test('a signal during the start exits with 0, and the next start works', async () => {
  for (const pattern of [/PostgreSQL listens/, /listening on/]) {
    const service = start();
    await service.until(pattern);
    expect(await stop(service, 'SIGINT')).toBe(0);
  }
  await untilReady(start());
});

test('a stalled PostgreSQL does not delay the shutdown', async () => {
  const url = new URL(await createTestDatabase());
  const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  const service = start({ DATABASE_URL: url.href });
  await untilListening(service);
  proxy.stall();
  expect(await stop(service)).toBe(0);
  await proxy.close();
});

test('a request that takes longer than 10 s after the signal is cut off, and the exit code is still 0', async () => {
  const service = start();
  const { url, key } = await untilReady(service);
  const finish = await beginCreate(url, key);
  expect(await stop(service)).toBe(0);
  await expect(finish()).rejects.toThrow();
});

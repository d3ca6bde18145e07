import { type AddressInfo, connect, createServer } from 'node:net';
import { untilListening } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { run } from '../support/process.js';
import { createTestDatabase } from '../support/test-service.js';

test('a start whose first connection is not opened in time, as on a busy machine, opens another and serves', async () => {
  const url = new URL(await createTestDatabase());
  const target = { host: url.hostname, port: Number(url.port) };
  let opened = 0;
  const server = createServer((near) => {
    opened += 1;
    near.on('error', () => {});
    // The first one never gets an answer.
    if (opened === 1) return;
    const far = connect(target).on('error', () => near.destroy());
    near.pipe(far).pipe(near);
    near.on('close', () => far.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  url.port = String((server.address() as AddressInfo).port);
  const service = run('main', [], { DATABASE_URL: url.href, PORT: '0' });
  await untilListening(service);
  service.child.kill();
  expect(await service.ended).toBe(0);
  expect(opened).toBeGreaterThan(1);
});

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { monitorAccepts } from '../../src/server/accept-monitor.js';

let server: Server;
let clients: Socket[];

beforeEach(async () => {
  clients = [];
  server = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  for (const client of clients) client.destroy();
  server.close();
  await once(server, 'close');
});

function open(count: number): void {
  const { port } = server.address() as AddressInfo;
  for (let n = 0; n < count; n += 1) clients.push(connect(port, '127.0.0.1'));
}

function block(durationMs: number): void {
  const until = performance.now() + durationMs;
  while (performance.now() < until);
}

test('a backlog shows while connections arrive faster than a busy process accepts them, and not afterwards', async () => {
  const accepts = monitorAccepts(server);
  const busy = setInterval(() => block(5), 1);
  try {
    open(200);
    await expect.poll(() => accepts.hasBacklog(), { interval: 100 }).toBe(true);
    await expect.poll(() => accepts.hasBacklog(), { interval: 100 }).toBe(false);
  } finally {
    clearInterval(busy);
  }
});

test('many connections to a process with time to spare are no backlog', async () => {
  const accepts = monitorAccepts(server);
  accepts.hasBacklog();
  for (let n = 0; n < 50; n += 1) {
    open(1);
    await once(server, 'connection');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  expect(accepts.hasBacklog()).toBe(false);
});

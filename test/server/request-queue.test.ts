import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RequestQueue } from '../../src/server/request-queue.js';

let server: Server;
let queue: RequestQueue;
/** The requests in the order in which they were started */
let order: { readonly path: string; readonly receivedAt: number | undefined; readonly startedAt: number }[];
/** How many requests each tick has started */
let perTick: number[];
/** Called for each request that is started */
let started: () => void;

beforeEach(async () => {
  order = [];
  perTick = [];
  started = () => {};
  queue = new RequestQueue(({ headers }) => headers['x-preferred'] !== undefined);
  let isTickOpen = false;
  server = queue.createServer({}, ({ url: path = '', receivedAt }, response) => {
    if (!isTickOpen) {
      isTickOpen = true;
      perTick.push(0);
      setImmediate(() => {
        isTickOpen = false;
      });
    }
    perTick.push((perTick.pop() ?? 0) + 1);
    order.push({ path, receivedAt, startedAt: performance.now() });
    started();
    response.end('done');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => server.close());

function requests(count: number, name: string, header = ''): string {
  return Array.from(
    { length: count },
    (_, n) => `GET /${name}-${n} HTTP/1.1\r\nHost: x\r\n${header}\r\n`,
  ).join('');
}

/** Sends all at once, on one connection; resolves with the responses. */
async function send(all: string): Promise<string> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(`${all}GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  return text(socket);
}

test('however many requests arrive at once, a tick starts a few of them, in the order of their arrival', async () => {
  expect((await send(requests(500, 'a'))).match(/200 OK/g)).toHaveLength(501);
  const expected = [...Array.from({ length: 500 }, (_, n) => `/a-${n}`), '/last'];
  expect(order.map(({ path }) => path)).toEqual(expected);
  expect(Math.max(...perTick)).toBeLessThanOrEqual(64);
  expect(queue.delayMs).toBe(0);
});

test('preferred requests overtake the others, which are not stuck meanwhile', async () => {
  await send(requests(400, 'other') + requests(200, 'preferred', 'X-Preferred: yes\r\n'));
  const paths = order.map(({ path }) => path);
  expect(paths).toHaveLength(601);
  const lastPreferred = paths.lastIndexOf('/preferred-199');
  expect(paths.slice(lastPreferred).length).toBeGreaterThan(250);
  const between = paths.slice(paths.indexOf('/preferred-0'), lastPreferred);
  expect(between.filter((path) => path.startsWith('/other')).length).toBeGreaterThan(5);
});

test('a request that waits was received when it arrived, not when it was started', async () => {
  await send(requests(500, 'a'));
  expect(order.at(-1)?.receivedAt).toBeLessThan(order.at(200)?.startedAt ?? 0);
});

test('a request runs in the asynchronous context in which it arrived, as tracing requires', async () => {
  const context = new AsyncLocalStorage<string>();
  const emit = server.emit.bind(server);
  server.emit = (event: string, ...args: unknown[]) => {
    const name = event === 'request' ? String((args[0] as IncomingMessage).url) : event;
    return context.run(name, () => emit(event, ...args));
  };
  const contexts: unknown[] = [];
  started = () => contexts.push(context.getStore());
  await send(requests(100, 'a'));
  expect(contexts).toEqual(order.map(({ path }) => path));
});

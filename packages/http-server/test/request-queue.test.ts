import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { RequestQueue } from '../src/request-queue.js';

let server: Server;
/** The requests in the order in which they were started */
let order: {
  readonly path: string;
  readonly receivedAt: number | undefined;
  readonly startedAt: number;
  readonly socket: Socket;
}[];
/** How many requests each tick has started */
let perTick: number[];
/** How many requests Node.js has created */
let parsed: number;
/** Called for each request that is started; the response follows once it resolves */
let started: () => unknown;

beforeEach(async () => {
  order = [];
  perTick = [];
  parsed = 0;
  started = () => {};
  const queue = new RequestQueue(({ headers }) => ({
    id: String(headers['x-caller']),
    isPreferred: headers['x-preferred'] !== undefined,
  }));
  let isTickOpen = false;
  server = queue.createServer({}, async ({ url: path = '', receivedAt, socket }, response) => {
    if (!isTickOpen) {
      isTickOpen = true;
      perTick.push(0);
      setImmediate(() => {
        isTickOpen = false;
      });
    }
    perTick.push((perTick.pop() ?? 0) + 1);
    order.push({ path, receivedAt, startedAt: performance.now(), socket });
    await started();
    response.end('done');
  });
  server.on('request', () => {
    parsed += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

function requests(count: number, name: string, header = ''): string {
  return Array.from(
    { length: count },
    (_, n) => `GET /${name}-${n} HTTP/1.1\r\nHost: x\r\n${header}\r\n`,
  ).join('');
}

/** Sends each text on a connection of its own, all at once; resolves with what is received on each until it ends. */
async function send(...texts: string[]): Promise<string[]> {
  const { port } = server.address() as AddressInfo;
  const sockets = texts.map(() => connect(port, '127.0.0.1').on('error', () => {}));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  for (const [index, socket] of sockets.entries()) socket.write(texts[index] ?? '');
  return Promise.all(
    sockets.map(async (socket) => {
      let received = '';
      socket.setEncoding('utf8').on('data', (chunk) => {
        received += chunk;
      });
      await once(socket, 'close');
      return received;
    }),
  );
}

/** As many as a connection may have unanswered, the last of which ends it */
const full = (name: string, header = '') =>
  requests(15, name, header) + requests(1, `${name}-last`, `Connection: close\r\n${header}`);
/** The same for this many connections */
const all = (count: number, name: string, header = '') =>
  Array.from({ length: count }, (_, n) => full(`${name}${n}`, header));

const statuses = (received: readonly string[]) => received.join('').match(/200 OK/g) ?? [];

const paths = () => order.map(({ path }) => path);

test('however many requests arrive at once, a tick starts a few of them, in the order of their arrival', async () => {
  expect(statuses(await send(...all(30, 'a')))).toHaveLength(480);
  const arrivals = order.map(({ receivedAt = 0 }) => receivedAt);
  expect(arrivals).toEqual(arrivals.toSorted((a, b) => a - b));
  for (let n = 0; n < 30; n += 1) {
    const own = paths().filter((path) => path.startsWith(`/a${n}-`));
    expect(own).toEqual([...Array.from({ length: 15 }, (_, i) => `/a${n}-${i}`), `/a${n}-last-0`]);
  }
  expect(Math.max(...perTick)).toBeLessThanOrEqual(64);
});

test('preferred requests overtake the others, which are not stuck meanwhile', async () => {
  await send(...all(36, 'other'), ...all(12, 'preferred', 'X-Preferred: yes\r\n'));
  const isPreferred = (path: string) => path.startsWith('/preferred');
  expect(paths()).toHaveLength(768);
  const lastPreferred = paths().findLastIndex(isPreferred);
  expect(paths().slice(lastPreferred).length).toBeGreaterThan(250);
  const between = paths().slice(paths().findIndex(isPreferred), lastPreferred);
  expect(between.filter((path) => !isPreferred(path)).length).toBeGreaterThan(5);
});

test('a preferred request starts when it arrives, however many others wait', async () => {
  let startedAtOnce: boolean | undefined;
  server.on('request', ({ url = '' }: IncomingMessage) => {
    if (url.startsWith('/preferred')) startedAtOnce = paths().at(-1) === url && parsed - order.length > 100;
  });
  await send(...all(30, 'other'), requests(1, 'preferred', 'Connection: close\r\nX-Preferred: yes\r\n'));
  expect(startedAtOnce).toBe(true);
});

test.each(['', 'X-Preferred: yes\r\n'])(
  'callers take turns, whatever each of them sends (%j)',
  async (header) => {
    const modest = requests(10, 'modest', `X-Caller: modest\r\n${header}`);
    void send(...all(30, 'busy', `X-Caller: busy\r\n${header}`), modest);
    await expect.poll(() => order.length, { timeout: 20_000 }).toBe(490);
    const turns = paths().flatMap((path, index) => (path.startsWith('/modest') ? [index] : []));
    expect(turns).toHaveLength(10);
    // Whatever arrived before it had started already.
    expect(Number(turns.at(-1)) - Number(turns[0])).toBeLessThan(60);
  },
);

test.each(['', 'X-Preferred: yes\r\n'])(
  'while there are several callers, none of them makes the ticks long for the others (%j)',
  async (header) => {
    // However long a busy machine takes, the other caller has been there a moment ago.
    const now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now);
    onTestFinished(() => clock.mockRestore());
    const busy = all(30, 'busy', `X-Caller: busy\r\n${header}`);
    await send(requests(1, 'modest', `Connection: close\r\nX-Caller: modest\r\n${header}`));
    await send(...busy);
    const [longest = 0] = perTick.toSorted((a, b) => b - a);
    // Those that arrive in a tick may start at once, beside those that have waited.
    expect(longest).toBeLessThanOrEqual(16);
  },
);

test('a request that waits was received when it arrived, not when it was started', async () => {
  await send(...all(30, 'a'));
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
  await send(full('a'));
  expect(contexts).toEqual(paths());
});

test('a connection with over 16 unanswered requests is closed, and what it sent beyond them is not even parsed', async () => {
  started = () => new Promise(() => {});
  const received = await send(requests(1_400, 'flood'));
  expect(received).toEqual(['']);
  expect(parsed).toBeLessThan(20);
  const startedBefore = order.length;
  started = () => {};
  expect(statuses(await send(full('a')))).toHaveLength(16);
  expect(order).toHaveLength(startedBefore + 16);
});

test('all responses of a connection close when its client leaves, so that what they hold is released', async () => {
  let closed = 0;
  server.prependListener('request', (_request, response) => response.on('close', () => (closed += 1)));
  started = () => new Promise(() => {});
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(requests(5, 'a'));
  await expect.poll(() => order.length, { timeout: 20_000 }).toBe(5);
  socket.destroy();
  await expect.poll(() => closed, { timeout: 20_000 }).toBe(5);
});

test('requests that are read one after the other may be any number', async () => {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  for (let n = 0; n < 300; n += 1) {
    socket.write(requests(1, `${n}`));
    await once(socket, 'data');
  }
  expect(order).toHaveLength(300);
});

test('all connections together have a bound, too: beyond it only preferred requests may be pipelined', async () => {
  started = () => new Promise(() => {});
  const flood = Array.from({ length: 300 }, (_, n) => requests(15, `flood${n}`));
  void send(...flood);
  await expect.poll(() => order.length, { timeout: 20_000 }).toBeGreaterThan(1_900);
  started = () => {};
  expect(statuses(await send(full('a', 'X-Preferred: yes\r\n')))).toHaveLength(16);
  expect(statuses(await send(requests(1, 'b', 'Connection: close\r\n')))).toHaveLength(1);
  const isOpen = ({ path, socket }: (typeof order)[number]) => path.startsWith('/flood') && !socket.destroyed;
  expect(order.filter(isOpen).length).toBeLessThanOrEqual(2_000 + flood.length);
});

import { channel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { until } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { create, list } from '#operations-under-test';
import { readResponses } from '../support/raw-http.js';
import { startService, type TestService, useService } from '../support/test-service.js';

/** Of what follows a refusal, as much is dropped, whoever sends it */
const DROPPED_BYTES = 1_000_000;
/** After a 413 with a declared length, more is */
const BODY_BYTES = 5_000_000;
/** For a request, in place of 30 s */
const REQUEST_MS = 1_000;

let impatient: TestService;

const { service } = useService();

beforeAll(async () => {
  const connections = {
    requestTimeout: REQUEST_MS,
    headersTimeout: REQUEST_MS,
    connectionsCheckingInterval: 50,
  };
  impatient = await startService({ databaseUrl: service.databaseUrl, connections });
});
afterAll(async () => {
  await impatient?.close();
});

interface Refused {
  readonly path: string;
  readonly key?: string;
  readonly type?: string;
}

/** Each is refused before its body is read, or while it is. */
const REFUSED: Readonly<Record<number, Refused>> = {
  401: { path: list.path, key: 'nonsense' },
  404: { path: '/nope' },
  405: { path: list.trpc },
  413: { path: create.path },
  415: { path: create.trpc, type: 'text/plain' },
};

const chunked = 'Transfer-Encoding: chunked';

function open({ port, key }: TestService, refused: Refused, ...fields: string[]): Socket {
  const head = [
    `POST ${refused.path} HTTP/1.1`,
    'Host: x',
    `Authorization: Bearer ${refused.key ?? key}`,
    `Content-Type: ${refused.type ?? 'application/json'}`,
    ...fields,
  ];
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  return socket;
}

/** As a client that reads once it has sent everything; it rejects if the connection is reset. */
async function sendThenRead(socket: Socket, body: string): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.write(body, 'latin1', () => resolve());
  });
  let received = '';
  for await (const chunk of socket) {
    received += chunk;
    if (/\r\n\r\n\{.*\}$/.test(received)) break;
  }
  return received;
}

test.each(
  Object.entries(REFUSED).flatMap(([status, refused]) =>
    ['close', 'keep-alive'].map((connection) => ({ ...refused, status: Number(status), connection })),
  ),
)(
  'a client gets the $status for 1 MB to $path, which it sends before it reads, with Connection: $connection',
  async ({ status, connection, ...refused }) => {
    for (const framing of [`Content-Length: ${DROPPED_BYTES}`, chunked])
      await expectResponse(framing, DROPPED_BYTES, connection, { ...refused, status });
  },
);

test.each(['close', 'keep-alive'])(
  'a client that declares 5 MB gets the 413 for them, which it sends before it reads, with Connection: %s',
  async (connection) => {
    const refused = { path: create.path, status: 413 };
    await expectResponse(`Content-Length: ${BODY_BYTES}`, BODY_BYTES, connection, refused);
  },
);

async function expectResponse(
  framing: string,
  length: number,
  connection: string,
  { status, ...refused }: Refused & { readonly status: number },
): Promise<void> {
  const socket = open(service, refused, `Connection: ${connection}`, framing);
  const body = 'x'.repeat(length);
  const bytes = framing === chunked ? `${length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body;
  const [response, ...others] = readResponses(await sendThenRead(socket, bytes));
  expect([framing, response?.status, others]).toEqual([framing, status, []]);
  expect(response?.headers.get('connection') === 'close').toBe(connection === 'close');
  socket.destroy();
}

/** The service's sides of the connections that are opened from now on. */
function recordSockets(): Socket[] {
  const sockets: Socket[] = [];
  const keep = (message: unknown) => void sockets.push((message as { readonly socket: Socket }).socket);
  channel('net.server.socket').subscribe(keep);
  onTestFinished(() => void channel('net.server.socket').unsubscribe(keep));
  return sockets;
}

/** Sends a chunk of a body without end. Returns what it has received when the connection is closed. */
async function sendWithoutEnd(socket: Socket): Promise<string> {
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
  let received = '';
  socket.on('error', () => {});
  socket.on('data', (data) => {
    received += data;
  });
  const closed = new Promise((resolve) => socket.on('close', resolve));
  const timer = setInterval(() => socket.writable && socket.write(chunk), 5);
  await closed;
  clearInterval(timer);
  return received;
}

test('of what follows a refusal without end, 1 MB is read before the connection is closed', async () => {
  const sockets = recordSockets();
  const sendAll = Object.entries(REFUSED).flatMap(([status, refused]) =>
    ['close', 'keep-alive'].flatMap((connection) =>
      [chunked, 'Content-Length: 100000000'].map(async (framing) => {
        const client = open(service, refused, `Connection: ${connection}`, framing);
        await once(client, 'connect');
        const { localPort } = client;
        const received = await sendWithoutEnd(client);
        const socket = sockets.find(({ remotePort }) => remotePort === localPort);
        const label = [status, connection, framing];
        expect([...label, ...readResponses(received).map((each) => String(each.status))]).toEqual([
          ...label,
          status,
        ]);
        await until(() => socket?.destroyed || undefined);
        // The body of a 413 that declares no length is read up to its limit, and what is on its way is read, too.
        expect([...label, socket?.bytesRead]).toEqual([...label, expect.toSatisfy(isBounded)]);
      }),
    ),
  );
  await Promise.all(sendAll);
  expect(sendAll).toHaveLength(20);
});

const isBounded = (bytes: number) => bytes > DROPPED_BYTES && bytes < DROPPED_BYTES + 400_000;

test('after a body that is too large, the connection serves the next request', async () => {
  const socket = open(service, { path: list.path }, `Content-Length: ${BODY_BYTES}`);
  const next = `GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
  socket.write('x'.repeat(BODY_BYTES) + next);
  let received = '';
  for await (const chunk of socket) received += chunk;
  expect(readResponses(received).map(({ status }) => status)).toEqual([413, 200]);
});

test.each(['close', 'keep-alive'])(
  'what is refused and sent too slowly is cut off, with Connection: %s',
  async (connection) => {
    const socket = open(impatient, { path: list.path }, `Connection: ${connection}`, chunked);
    let received = '';
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk;
    });
    const closed = new Promise((resolve) => socket.on('close', resolve));
    socket.write(`10000\r\n${'x'.repeat(0x10000)}\r\n`);
    const timer = setInterval(() => socket.writable && socket.write('1\r\nx\r\n'), 20);
    await closed;
    clearInterval(timer);
    expect(readResponses(received).map(({ status }) => status)).toEqual([413]);
  },
);

import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { create, list } from '../../support/operations-under-test.js';
import { readResponses } from '../../support/raw-http.js';
import { startService, type TestService } from '../../support/test-service.js';

const BODY_BYTES = 5_000_000;
/** For a request, in place of 30 s */
const REQUEST_MS = 1_000;

let service: TestService;
let impatient: TestService;

beforeAll(async () => {
  service = await startService();
  const connections = {
    requestTimeout: REQUEST_MS,
    headersTimeout: REQUEST_MS,
    connectionsCheckingInterval: 50,
  };
  impatient = await startService({ databaseUrl: service.databaseUrl, connections });
});
afterAll(async () => {
  await impatient?.close();
  await service?.close();
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
  'a client gets the $status for 5 MB to $path, which it sends before it reads, with Connection: $connection',
  async ({ status, connection, ...refused }) => {
    const body = 'x'.repeat(BODY_BYTES);
    const chunk = `${BODY_BYTES.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    for (const [framing, bytes] of [
      [`Content-Length: ${BODY_BYTES}`, body],
      ['Transfer-Encoding: chunked', chunk],
    ] as const) {
      const socket = open(service, refused, `Connection: ${connection}`, framing);
      const [response, ...others] = readResponses(await sendThenRead(socket, bytes));
      expect([framing, response?.status, others]).toEqual([framing, status, []]);
      expect(response?.headers.get('connection') === 'close').toBe(connection === 'close');
      socket.destroy();
    }
  },
);

test('after a body that is too large, the connection serves the next request', async () => {
  const socket = open(service, { path: list.path }, `Content-Length: ${BODY_BYTES}`);
  const next = `GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
  socket.write('x'.repeat(BODY_BYTES) + next);
  let received = '';
  for await (const chunk of socket) received += chunk;
  expect(readResponses(received).map(({ status }) => status)).toEqual([413, 200]);
});

test.each(['close', 'keep-alive'])(
  'what is refused and sent without end is cut off, with Connection: %s',
  async (connection) => {
    const socket = open(
      impatient,
      { path: list.path },
      `Connection: ${connection}`,
      'Transfer-Encoding: chunked',
    );
    let received = '';
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk;
    });
    const closed = new Promise((resolve) => socket.on('close', resolve));
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const timer = setInterval(() => socket.writable && socket.write(chunk), 20);
    await closed;
    clearInterval(timer);
    expect(readResponses(received).map(({ status }) => status)).toEqual([413]);
  },
);

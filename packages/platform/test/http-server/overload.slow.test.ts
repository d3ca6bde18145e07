import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { createCaller, type Environment, untilListening } from '@animal-store/platform/testing';
import { afterEach, expect, test } from 'vitest';
import { create, list, NUMBER, newItem, read } from '#operations-under-test';
import { generateKey } from '../../src/keys/format.js';
import { run, runKeys, UNREACHED_LIMITS } from '../support/process.js';
import { createTestDatabase } from '../support/test-service.js';

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Starts the built service in a process of its own, with a key whose limits no test reaches. */
/**
 * Memory is compared with what the service keeps. How far V8 lets its garbage pile up before it looks is a choice of the
 * version of Node.js: up to 128 MB on 24, 32 MB on 20.
 */
const YOUNG_GENERATION = '--max-semi-space-size=16';

async function startProcess() {
  const environment: Environment = { DATABASE_URL: await createTestDatabase(), APP_ENV: 'staging' };
  const { key } = await runKeys(environment, 'create', '--name', 'x', ...UNREACHED_LIMITS);
  const program = run('main', [], {
    ...environment,
    PORT: '0',
    ANONYMOUS_PER_MINUTE: '1000000',
    NODE_OPTIONS: YOUNG_GENERATION,
  });
  closers.push(async () => {
    program.child.kill('SIGKILL');
    await program.ended;
  });
  const url = await untilListening(program);
  return { url, port: Number(new URL(url).port), key, environment, program };
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  closers.push(() => socket.destroy());
  return socket;
}

test('200 half-open sockets and 2,000 idle ones do not keep other clients from being served', async () => {
  const { url, port, key } = await startProcess();
  const call = createCaller({ url, key });
  const halfOpen = await Promise.all(Array.from({ length: 200 }, () => open(port)));
  for (const socket of halfOpen) socket.write(`GET ${list.path} HTTP/1.1\r\nHost: x\r\nX-Slow: `);
  for (let n = 0; n < 20; n += 1) {
    const idle = await Promise.all(Array.from({ length: 100 }, () => open(port)));
    for (const socket of idle.slice(50)) socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
  }
  for (let n = 0; n < 100; n += 1) {
    expect((await call(n % 2 === 0 ? list.path : list.trpc)).status).toBe(200);
  }
  expect(halfOpen.filter((socket) => !socket.closed)).toHaveLength(200);
});

interface Hostile {
  readonly method: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

const json = { 'content-type': 'application/json' };
const bodies: (string | Buffer)[] = [
  ...['', '{', '['.repeat(60_000), 'x'.repeat(70_000), `{"__proto__":${JSON.stringify(create.body)}}`],
  ...[`{"${NUMBER}":${'9'.repeat(60_000)}}`, JSON.stringify(newItem('\0'))],
  ...[Buffer.from([0x22, 0xff, 0xfe, 0x22]), Buffer.alloc(100)],
];

/** One request of every kind, with a mark that no other request has. */
const createHostileRequests = (mark: string): Hostile[] => [
  ...bodies.flatMap((body) =>
    [create.path, create.trpc].map((path) => ({ method: 'POST', path, headers: json, body })),
  ),
  { method: 'POST', path: create.path, headers: { 'content-type': mark }, body: '{}' },
  { method: 'POST', path: `/${mark}`, headers: json, body: 'x'.repeat(70_000) },
  ...['DELETE', 'PROPFIND', 'OPTIONS'].map((method) => ({ method, path: list.path })),
  ...[
    list.path.replace('/v1', '/v1/'),
    `/v1/${mark}`,
    read.pathOf(mark),
    '/v1/%zz',
    `/${mark}`,
    '/trpc/__proto__',
  ].map((path) => ({
    method: 'GET',
    path,
  })),
  { method: 'GET', path: `/trpc/${mark},${list.name}?batch=1` },
  { method: 'GET', path: `/trpc/${'x,'.repeat(3_000)}?batch=1` },
  { method: 'GET', path: `${list.trpc}?input={` },
  { method: 'GET', path: `${list.path}?${'a=1&'.repeat(2_000)}limit=0` },
  { method: 'GET', path: list.path, headers: { authorization: `Bearer by_test_${mark}` } },
  { method: 'GET', path: list.path, headers: { 'x-request-id': mark, 'idempotency-key': mark } },
  { method: 'GET', path: list.path, headers: { x: 'y'.repeat(20_000) } },
];

function send(url: string, agent: Agent, key: string, { method, path, headers, body }: Hostile) {
  return new Promise<void>((resolve) => {
    const options = { agent, method, path, headers: { authorization: `Bearer ${key}`, ...headers } };
    request(url, options, (response) => response.resume().on('close', resolve))
      .on('error', () => resolve())
      .end(body);
  });
}

/** Sends this many requests, one kind after the other, 40 at a time. */
async function attack(url: string, key: string, requests: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 40 });
  const kinds = createHostileRequests('').length;
  let sent = 0;
  const work = async () => {
    while (sent < requests) {
      const number = sent;
      sent += 1;
      const hostile = createHostileRequests(`mark${number}`)[number % kinds];
      if (hostile !== undefined) await send(url, agent, key, hostile);
    }
  };
  await Promise.all(Array.from({ length: 40 }, work));
  agent.destroy();
}

/** The series of requests that got a response. Whether any client left before its response is a matter of chance. */
const RESPONSE_SERIES = /^boatyard_(?:http|limiter)_(?!.*status="499").*(?= \S+$)/gm;
const withoutStatus = (series: string) => series.replace(/status="\d+"/, '');

test('20,000 hostile requests grow memory by less than 150 MB and add no labels', async () => {
  const { url, key } = await startProcess();
  const readMetrics = async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    const bytes = Number(/^process_resident_memory_bytes (\d+)/m.exec(text)?.[1]);
    const counts = [...text.matchAll(/^boatyard_http_request_duration_seconds_count\{.*\} (\d+)$/gm)];
    const total = counts.reduce((sum, [, count]) => sum + Number(count), 0);
    const series: string[] = text.match(RESPONSE_SERIES) ?? [];
    return { megabytes: bytes / 2 ** 20, series, total, text };
  };
  await attack(url, key, 1_000);
  await readMetrics();
  const before = await readMetrics();
  await attack(url, key, 20_000);
  const after = await readMetrics();
  expect(after.megabytes - before.megabytes).toBeLessThan(150);
  const known = new Set(before.series.map(withoutStatus));
  const added = after.series.filter((series) => !before.series.includes(series));
  // A busy machine may deny requests that waited for long, but what they are counted by is known.
  expect(added.filter((series) => !/status="503"/.test(series) || !known.has(withoutStatus(series)))).toEqual(
    [],
  );
  expect(after.text).not.toContain('mark');
  expect(after.total - before.total).toBeGreaterThan(18_000);
  expect((await createCaller({ url, key })(list.path)).status).toBe(200);
}, 120_000);

/** Sends as fast as the connection takes it, and opens another one whenever it is closed. */
function flood(port: number, bytes: string, isOver: () => boolean): void {
  if (isOver()) return;
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  const write = () => {
    while (!isOver() && socket.writable && socket.write(bytes));
  };
  socket.on('connect', write).on('drain', write).resume();
  socket.on('close', () => setImmediate(() => flood(port, bytes, isOver)));
  closers.push(() => socket.destroy());
}

test('clients that never wait for a response neither grow the process nor stop it from serving others', async () => {
  const { url, port, key, environment, program } = await startProcess();
  const limited = await runKeys(environment, 'create', '--name', 'y', '--plan', 'free');
  const readMegabytes = async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return Number(/^process_resident_memory_bytes (\d+)/m.exec(text)?.[1]) / 2 ** 20;
  };
  const call = createCaller({ url, key });
  const bearer = (token: string) => `Host: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const unknown = () => bearer(generateKey('by_test_'));
  const floodWithEach = async () => {
    for (const write of [
      () => `GET ${list.path} HTTP/1.1\r\n${unknown()}`,
      () => `GET ${list.path} HTTP/1.1\r\nHost: x\r\n\r\n`,
      () => 'GET / HTTP/1.0\r\n\r\n',
      () => `GET ${list.trpc} HTTP/1.1\r\n${unknown()}`,
      () => `GET ${list.path} HTTP/1.1\r\n${bearer(limited.key)}`,
    ]) {
      let isOver = false;
      const bytes = Array.from({ length: 500 }, write).join('');
      for (let n = 0; n < 8; n += 1) flood(port, bytes, () => isOver);
      for (const end = performance.now() + 3_000; performance.now() < end; )
        expect((await call(list.path)).status).toBe(200);
      isOver = true;
    }
  };
  // The first floods grow the heap to what they need, on a slow machine more than one of them. A leak grows with each flood.
  const growth = [];
  for (let before = await readMegabytes(); growth.length < 4; ) {
    await floodWithEach();
    const after = await readMegabytes();
    growth.push(after - before);
    if (growth.length > 1 && after - before < 50) break;
    before = after;
  }
  expect(growth.at(-1)).toBeLessThan(50);
  program.child.kill('SIGTERM');
  expect(await program.ended).toBe(0);
}, 240_000);

import { connect } from 'node:net';
import { toolCall, until } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { list } from '#operations-under-test';
import { isEarly, OUTCOMES, PER_MINUTE, useEarlyCalls, type Watched } from '../support/early-calls.js';
import { type EveryCall, nameOf } from '../support/every-call.js';

// Nothing is seen of a query that has begun for a request that is not admitted, whatever it came to.

const { watched, own, reset, callWith, issue, send, untilEnded } = useEarlyCalls();

const untilLogged = () => until(() => watched.lines.some(({ msg }) => msg === 'request') || undefined);

/** What is seen of a request: its response, its lines in the log, which metrics it has changed, and its usage. */
async function observe(each: EveryCall, key: string) {
  const before = await readCounters();
  const { status, headers, body } = await send(each, key);
  await untilLogged();
  const after = await readCounters();
  return {
    status,
    body,
    headers: [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date'),
    lines: watched.lines.map(({ reqId, time, durationMs, ...line }) => line),
    metrics: [...after].filter((counter) => !before.has(counter)).map((counter) => counter.split(' ')[0]),
    usage: watched.usage,
  };
}

/** The counters of decisions, and of requests over the protocols, with their values */
async function readCounters(): Promise<ReadonlySet<string>> {
  const response = await fetch(`${own.service.url}/metrics`);
  const counters = /^\w+_(?:decisions_total|http_request_duration_seconds_count)\{(?!.*"other").*$/gm;
  return new Set((await response.text()).match(counters));
}

test.each(Object.entries(OUTCOMES))(
  'nothing is seen of a query %s, if its request is denied',
  async (_outcome, answer) => {
    for (const each of own.everyCall.filter(isEarly)) {
      const { key } = await issue(PER_MINUTE);
      const denied = await observe(each, key);
      expect([nameOf(each), denied.status, watched.events]).toEqual([nameOf(each), 429, []]);
      expect([denied.lines.length, denied.metrics.length, denied.usage.length]).toEqual([1, 2, 1]);
      reset();
      watched.answer = answer;
      // As if another node had admitted the requests.
      own.limiter.knowsCounts = false;
      own.limiter.hold();
      const observed = observe(each, key);
      await untilEnded();
      own.limiter.release();
      expect([nameOf(each), await observed]).toEqual([nameOf(each), denied]);
    }
  },
);

test.each(Object.entries(OUTCOMES))(
  'a client that leaves beside a query %s is logged once, as one that has left',
  async (_outcome, answer: Watched['answer']) => {
    for (const path of [list.path, list.trpc]) {
      const { key, apiKey } = await issue();
      watched.answer = answer;
      own.limiter.hold();
      const socket = connect(own.service.port, '127.0.0.1').on('error', () => {});
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
      await untilEnded();
      socket.resetAndDestroy();
      await untilLogged();
      own.limiter.release();
      // What is answered behind it shows that the process goes on.
      expect((await callWith(own.service.key)('/v1/nope')).status).toBe(404);
      const codes = watched.lines.filter(({ msg, keyId }) => msg === 'request' && keyId === apiKey.id);
      expect(codes.map(({ code }) => code)).toEqual(['client_left']);
    }
  },
);

test('a client that leaves before all of a tool’s arguments have arrived is logged once, as one that has left', async () => {
  const { key, apiKey } = await issue();
  const [tool] = own.everyCall.filter((each) => isEarly(each) && each.protocol === 'MCP');
  const { headers, body } = toolCall(tool?.operation ?? '', {});
  const text = String(body);
  const head = Object.entries({ ...headers, Host: 'x', Authorization: `Bearer ${key}` })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  own.limiter.hold();
  const socket = connect(own.service.port, '127.0.0.1').on('error', () => {});
  socket.write(`POST /mcp HTTP/1.1\r\n${head}Content-Length: ${text.length}\r\n\r\n${text.slice(0, 9)}`);
  await own.limiter.untilHeld();
  socket.resetAndDestroy();
  await untilLogged();
  own.limiter.release();
  expect((await callWith(own.service.key)('/v1/nope')).status).toBe(404);
  const lines = watched.lines.filter(({ keyId, err }) => keyId === apiKey.id || err !== undefined);
  expect(lines.map(({ code }) => code)).toEqual(['client_left']);
  expect(watched.events).toEqual([]);
});

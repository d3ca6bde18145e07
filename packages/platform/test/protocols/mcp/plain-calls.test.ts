import { randomUUID } from 'node:crypto';
import { createLimiter } from '@animal-store/limits';
import { createCaller, toolCall, until } from '@animal-store/platform/testing';
import { PerRequestHTTPServerTransport } from '@modelcontextprotocol/server';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { appRouter, create, definition, list, resources } from '#operations-under-test';
import { listOperations, type Operation } from '../../../src/operations/list-operations.js';
import { UsageCounter } from '../../../src/usage/counter.js';
import type { UsageStore } from '../../../src/usage/store.js';
import {
  bodyOf,
  existingPath,
  readPathParameters,
  requiredParameters,
} from '../../support/document-requests.js';
import { createChecker } from '../../support/openapi-checker.js';
import { startService, type TestService } from '../../support/test-service.js';

// A call whose name is in Base64 gets a server of its own, as the SDK asks for. That of a plain call must say the same.

const { operations } = createChecker(resources);
const tools = listOperations(appRouter).filter(({ tool }) => tool !== false);

let service: TestService;
const errors: string[] = [];
const ownServers = vi.spyOn(PerRequestHTTPServerTransport.prototype, 'handleMessage');

beforeAll(async () => {
  const log = pino({ level: 'error' }, { write: (line: string) => void errors.push(line) });
  // Nothing is stored of usage, so that getKey says the same twice.
  const usage = new UsageCounter({
    store: {} as UsageStore,
    operations: tools.map(({ name }) => name),
    now: Date.now,
    warn: () => {},
  });
  // Nor does time pass, for the second in which its windows end.
  const startedAt = Date.now();
  const now = () => startedAt;
  const limiter = await createLimiter({ windows: definition.windows, redisUrls: [], log, now, clock: now });
  service = await startService({ log, usage, limiter, now });
});
afterAll(() => service.close());

interface Message {
  readonly params: { readonly arguments: object; readonly _meta: object };
}
type Change = (message: Message) => unknown;

const set = (members: object) => (message: Message) => ({ ...message, ...members });
const setParams = (members: object) => (message: Message) => ({
  ...message,
  params: { ...message.params, ...members },
});
const setMeta = (members: object) => (message: Message) =>
  setParams({ _meta: { ...message.params._meta, ...members } })(message);
const setArguments = (members: object) => (message: Message) =>
  setParams({ arguments: { ...message.params.arguments, ...members } })(message);
const client = 'io.modelcontextprotocol/clientInfo';
const capabilities = 'io.modelcontextprotocol/clientCapabilities';
const logLevel = 'io.modelcontextprotocol/logLevel';

/** What is changed in the message of an ordinary call: what the tool gets, */
const ARGUMENTS: Readonly<Record<string, Change>> = {
  nothing: (message) => message,
  'no arguments': setParams({ arguments: undefined }),
  ...Object.fromEntries(
    [null, [], 'x', 1].map((value) => [
      `the arguments ${JSON.stringify(value)}`,
      setParams({ arguments: value }),
    ]),
  ),
  'an unknown argument': setArguments({ unknown: 1 }),
  'an argument called constructor': setArguments({ constructor: {} }),
  'an argument called __proto__': setArguments(JSON.parse('{"__proto__":{"a":1}}')),
};
/** and what the SDK alone looks at. */
const ENVELOPES: Readonly<Record<string, Change>> = {
  ...Object.fromEntries(
    ['x', '', 'ü', '1', 0, -1, 1e3, Number.MAX_SAFE_INTEGER, 2 ** 53, 1.5, null, true, {}, []].map((id) => [
      `the id ${JSON.stringify(id)}`,
      set({ id }),
    ]),
  ),
  'no id': set({ id: undefined }),
  'JSON-RPC 1.0': set({ jsonrpc: '1.0' }),
  'a further member': set({ further: 1 }),
  'a result as well': set({ result: {} }),
  'params that are a list': set({ params: [] }),
  'a further param': setParams({ further: 1 }),
  'a task': setParams({ task: { ttl: 1 } }),
  'a task that is none': setParams({ task: 1 }),
  'the state of a request': setParams({ requestState: 'x' }),
  'a state that is a number': setParams({ requestState: 1 }),
  'answers to a question': setParams({ inputResponses: { a: { action: 'accept' }, b: { method: 'c' } } }),
  'answers that are a list': setParams({ inputResponses: [] }),
  'a token for progress': setMeta({ progressToken: 'x' }),
  'a token that is a fraction': setMeta({ progressToken: 1.5 }),
  'a token that is an object': setMeta({ progressToken: {} }),
  'a level of logs': setMeta({ [logLevel]: 'debug' }),
  'a level that there is not': setMeta({ [logLevel]: 'x' }),
  'no capabilities': setMeta({ [capabilities]: undefined }),
  'capabilities that are a number': setMeta({ [capabilities]: 1 }),
  'nested capabilities': setMeta({ [capabilities]: { experimental: { a: { b: [{}] } } } }),
  'a client without a version': setMeta({ [client]: { name: 'x' } }),
  'a client with more': setMeta({ [client]: { name: 'x', version: '1', further: {} } }),
  'a related task': setMeta({ 'io.modelcontextprotocol/related-task': 1 }),
};

interface Answer {
  readonly status: number;
  /** Without those that differ from one response to the next */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly text: string;
}

async function sendOnce(init: RequestInit): Promise<Answer> {
  const headers = { ...(init.headers as Record<string, string>), authorization: `Bearer ${service.key}` };
  const response = await fetch(`${service.url}/mcp`, { ...init, headers });
  const isOwn = (name: string) => name === 'date' || name === 'x-request-id' || /ratelimit/.test(name);
  const shown = [...response.headers].map(([name, value]) => [name, isOwn(name) ? '' : value] as const);
  return { status: response.status, headers: shown, text: await response.text() };
}

/** On a busy machine a call may have to be repeated. */
const send = (init: RequestInit) =>
  until(async () => {
    const answer = await sendOnce(init);
    return /"code":"(?:service_unavailable|idempotency_key_in_use)"/.test(answer.text) ? undefined : answer;
  }, 60_000);

const toBase64 = (name: string) => `=?base64?${Buffer.from(name).toString('base64')}?=`;

/** What a call is answered with as it is, and with a server of its own. */
async function sendBothWays(name: string, init: RequestInit) {
  ownServers.mockClear();
  const plain = await send(init);
  const isPlain = ownServers.mock.calls.length === 0;
  const headers = { ...(init.headers as Record<string, string>), 'mcp-name': toBase64(name) };
  return { plain, isPlain, own: await send({ ...init, headers }) };
}

/** Of what has just been added. Repeated, it does nothing further. */
async function ordinaryCall({ name, idempotent }: Operation): Promise<RequestInit> {
  const operation = operations.find(({ operationId }) => operationId === name);
  if (operation === undefined) throw new Error(`The document has no ${name}`);
  const path = await existingPath(operations, operation, createCaller(service));
  const input = {
    ...readPathParameters(operation, path),
    ...requiredParameters(operation),
    ...(bodyOf(operation) as object | undefined),
  };
  return toolCall(name, input, idempotent ? { 'idempotency-key': randomUUID() } : {});
}

test.each(tools.map((operation) => [operation.name, operation] as const))(
  'a plain call of %s is answered byte for byte as with a server of its own, whatever else it says',
  async (name, operation) => {
    const init = await ordinaryCall(operation);
    await send(init);
    const message = JSON.parse(String(init.body));
    // The SDK does not know tools apart.
    const further = name === list.name || name === create.name ? ENVELOPES : {};
    for (const [what, change] of Object.entries({ ...ARGUMENTS, ...further })) {
      const body = JSON.stringify(change(message));
      const { plain, isPlain, own } = await sendBothWays(name, { ...init, body });
      expect([what, plain]).toEqual([what, own]);
      if (plain.text.startsWith('{"result":')) expect([what, isPlain]).toEqual([what, true]);
    }
    expect(errors).toEqual([]);
  },
);

test.each(['nope', 'constructor', '__proto__', 'toString', 'ü', 'a b', '"', 'x'.repeat(99)])(
  'a call of %j, which is no tool, is answered as with a server of its own',
  async (name) => {
    const { plain, own } = await sendBothWays(name, toolCall(name));
    expect(plain).toEqual(own);
    expect(JSON.parse(plain.text).error.code).toBe(-32_602);
  },
);

test('a name in Base64 without its padding is refused, however the body has it', async () => {
  const padded = tools.map(({ name }) => toBase64(name)).find((name) => name.endsWith('=?=')) as string;
  const name = Buffer.from(padded.slice(9, -2), 'base64').toString();
  const { status, text } = await send(toolCall(name, {}, { 'mcp-name': padded.replace(/=+\?=$/, '?=') }));
  expect([status, JSON.parse(text).error.code]).toEqual([400, -32_020]);
});

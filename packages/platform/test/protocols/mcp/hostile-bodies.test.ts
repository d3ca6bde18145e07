import { randomUUID } from 'node:crypto';
import { REVISION } from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { create } from '#operations-under-test';
import { startService, type TestService } from '../../support/test-service.js';

let service: TestService;
const errors: string[] = [];

beforeAll(async () => {
  const log = pino({ level: 'warn' }, { write: (line: string) => void errors.push(line) });
  service = await startService({ log });
});
afterAll(() => service.close());

const PARSE_ERROR = -32_700;
const isNoFailure = (status: number) => status < 500;

const DEPTH = 9_000;
/** As JSON. */
const VALUES: Readonly<Record<string, string>> = {
  null: 'null',
  'a fraction': '1.5',
  'a list with a name': JSON.stringify([create.name]),
  'an object with the members of one': '{"toString":1,"valueOf":1,"constructor":1,"__proto__":{"then":1}}',
  'a text of 50,000 characters': JSON.stringify('x'.repeat(50_000)),
  'half of a surrogate pair': '"\\ud800"',
  'lists within lists': '['.repeat(DEPTH) + ']'.repeat(DEPTH),
  'objects within objects': `${'{"a":'.repeat(DEPTH)}1${'}'.repeat(DEPTH)}`,
};

const VALUE = '(value)';
const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientCapabilities': {},
};
const call = { name: create.name, arguments: create.body, _meta: META };
const request = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 1, method, params });
const callWith = (members: object) => request('tools/call', { ...call, ...members });
const callWithMeta = (members: object) => callWith({ _meta: { ...META, ...members } });
const info = { name: 'test', version: '1' };
/** Where a value stands in a message. */
const MESSAGES: Readonly<Record<string, unknown>> = {
  'as the whole': VALUE,
  'as the id': { ...callWith({}), id: VALUE },
  'as the method': { ...callWith({}), method: VALUE },
  'as the params of a call': request('tools/call', VALUE),
  'as the name of a tool': callWith({ name: VALUE }),
  'as the name of a tool, without _meta': request('tools/call', { name: VALUE }),
  'as the arguments': callWith({ arguments: VALUE }),
  'as an argument': callWith({ arguments: { ...create.body, name: VALUE } }),
  'as an unknown argument, without _meta': request('tools/call', {
    name: create.name,
    arguments: { ...create.body, unknown: VALUE },
  }),
  'as the idempotencyKey': callWith({ arguments: { ...create.body, idempotencyKey: VALUE } }),
  'as _meta': callWith({ _meta: VALUE }),
  'as the revision': callWithMeta({ 'io.modelcontextprotocol/protocolVersion': VALUE }),
  'as the client': callWithMeta({ 'io.modelcontextprotocol/clientInfo': VALUE }),
  'as the traceparent': callWithMeta({ traceparent: VALUE }),
  'as a cursor': request('tools/list', { cursor: VALUE }),
  'as the capabilities of a handshake': request('initialize', {
    protocolVersion: '2025-11-25',
    clientInfo: info,
    capabilities: VALUE,
  }),
  'as the params of a notification': {
    jsonrpc: '2.0',
    method: 'notifications/initialized',
    params: VALUE,
  },
  'as a result': { jsonrpc: '2.0', id: 1, result: VALUE },
};

const NAMED = { 'mcp-protocol-version': REVISION, 'mcp-method': 'tools/call', 'mcp-name': create.name };
const newKey = () => ({ 'idempotency-key': randomUUID() });
const HEADS: Readonly<Record<string, () => Record<string, string>>> = {
  'no further header': () => ({}),
  'the header of an older revision': () => ({ 'mcp-protocol-version': '2025-11-25' }),
  'Mcp-Method and Mcp-Name': () => NAMED,
  'Mcp-Method alone': () => ({ 'mcp-method': 'tools/call' }),
  'Idempotency-Key': newKey,
  'Idempotency-Key, Mcp-Method and Mcp-Name': () => ({ ...NAMED, ...newKey() }),
  Prefer: () => ({ ...NAMED, prefer: 'error=invalid_request' }),
};

/** The messages of JSON-RPC's errors */
const said = new Set<string>();

test.each(
  Object.entries(MESSAGES).flatMap(([place, message]) =>
    Object.entries(VALUES).map(([value, json]) => ({ value, place, message, json })),
  ),
)('$value $place is no failure of the service, whatever the head says', async ({ message, json }) => {
  const body = JSON.stringify(message).replace(`"${VALUE}"`, () => json);
  const isDeep = json.length > DEPTH && !json.startsWith('"');
  for (const [head, headers] of Object.entries(HEADS)) {
    const common = { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' };
    const init = { method: 'POST', headers: { ...common, ...headers() }, body };
    const response = await fetch(`${service.url}/mcp`, init);
    const text = await response.text();
    expect([head, response.status, text]).toEqual([head, expect.toSatisfy(isNoFailure), text]);
    expect(text).not.toMatch(/RangeError|TypeError|Maximum call|primitive|stack|-32603/);
    const { error } = text === '' ? { error: undefined } : JSON.parse(text);
    if (error !== undefined) said.add(error.message);
    const isRehearsed = response.headers.has('preference-applied');
    if (isDeep && !isRehearsed) expect([response.status, error.code]).toEqual([400, PARSE_ERROR]);
  }
  expect(errors.splice(0)).toEqual([]);
});

test('what refuses them are sentences of the service, and no text of a library', () => {
  expect(said.size).toBeGreaterThan(5);
  for (const message of said) {
    expect(message).toMatch(/^[A-Z].*\.$/s);
    expect(message).not.toMatch(/Bad Request|Invalid input|expected|received|envelope/);
    expect(message.length).toBeLessThan(300);
  }
});

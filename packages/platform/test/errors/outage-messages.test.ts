import { type Caller, createCaller, execute, post, type TestResponse } from '@animal-store/platform/testing';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { appRouter, create } from '#operations-under-test';
import { ApiError } from '../../src/errors/api-error.js';
import { listOperations } from '../../src/operations/list-operations.js';
import { outageMessage, withOutageMessage } from '../../src/operations/outage.js';
import { type EveryCall, listEveryCall, nameOf } from '../support/every-call.js';
import { useService } from '../support/test-service.js';

const { service } = useService();
let call: Caller;
let calls: readonly EveryCall[];
const expected = new Map(
  listOperations(appRouter).map(({ name, method, idempotent }) => [name, { method, idempotent }]),
);

beforeAll(async () => {
  call = createCaller(service);
  const { key, apiKey } = await service.keys.create({ name: 'endable', plan: 'pro' });
  calls = await listEveryCall(call, { key, hint: apiKey.hint });
});

/** What the 503 of a call says. */
function messageOf({ operation, protocol }: EveryCall): RegExp {
  const { method, idempotent } = expected.get(operation) ?? {};
  if (method === 'GET') return /^The database cannot serve the request now\. Try again shortly\.$/;
  if (protocol === 'MCP') return /^The database cannot serve .* The change may have been made nevertheless: /;
  if (idempotent) return /may have been carried out: repeat it with its Idempotency-Key, or look first if /;
  return method === 'POST'
    ? /may have been carried out: look before you/
    : /may have been carried out: look, or repeat it\.$/;
}

/** Sends a call, and resolves with what the error says that it is answered with. */
async function readMessage(each: EveryCall, added: Readonly<Record<string, string>>): Promise<string> {
  let answer: TestResponse | undefined;
  await each.send(async (path, init = {}) => {
    const headers = new Headers(init.headers);
    for (const [name, value] of Object.entries(added)) headers.set(name, value);
    answer = await call(path, { ...init, headers });
    return answer;
  });
  const { body } = answer ?? {};
  const error = body?.result?.structuredContent ?? body?.error?.data.error ?? body;
  expect([nameOf(each), error?.code]).toEqual([nameOf(each), 'service_unavailable']);
  return error.message;
}

async function expectMessages(some: readonly EveryCall[], headers = {}): Promise<void> {
  expect(some).not.toEqual([]);
  const messages = await Promise.all(
    some.map(async (each) => [nameOf(each), await readMessage(each, headers)]),
  );
  expect(messages).toEqual(some.map((each) => [nameOf(each), expect.stringMatching(messageOf(each))]));
}

/** Changes the database, and has sessions notice it. */
async function alter(change: string): Promise<void> {
  const { pathname } = new URL(service.databaseUrl);
  const name = pathname.slice(1);
  const otherUrl = Object.assign(new URL(service.databaseUrl), { pathname: '/postgres' }).href;
  await execute(otherUrl, `ALTER DATABASE ${name} ${change}`);
  await execute(
    otherUrl,
    `SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE datname = '${name}'`,
  );
}

test('every operation rehearses the message of its own 503, over every protocol', async () => {
  await expectMessages(calls, { prefer: 'error=service_unavailable' });
});

test('a 503 of a change says that it may have been carried out, and that of a create how to repeat it', async () => {
  await alter('SET default_transaction_read_only = on');
  onTestFinished(() => alter('RESET default_transaction_read_only'));
  await expectMessages(calls.filter(({ isRead }) => !isRead));
});

test('a 503 of a read says to try again', async () => {
  await alter('ALLOW_CONNECTIONS false');
  onTestFinished(() => alter('ALLOW_CONNECTIONS true'));
  await expectMessages(calls.filter(({ isRead }) => isRead));
});

test('in a batch and in a stream, each call has the message of its own operation', async () => {
  const path = `${create.trpc},revokeKey?batch=1`;
  const init = post({ 0: create.body, 1: { hint: 'x' } }, { prefer: 'error=service_unavailable' });
  const { body } = await call(path, init);
  const [ofCreate, ofChange] = body.map(({ error }: { error: { message: string } }) => error.message);
  expect(ofCreate).toMatch(/Idempotency-Key/);
  expect(ofChange).toMatch(/: look, or repeat it\.$/);
  const headers = {
    ...init.headers,
    authorization: `Bearer ${service.key}`,
    'trpc-accept': 'application/jsonl',
  };
  const stream = await (await fetch(service.url + path, { ...init, headers })).text();
  for (const message of [ofCreate, ofChange]) expect(stream).toContain(`"message":"${message}"`);
});

test('a create that may add another one again is to be looked for before it is repeated', () => {
  const openapi = { method: 'POST', path: '/x', summary: 'X' } as const;
  const meta = { openapi, stability: 'beta', scope: 'any' } as const;
  expect(outageMessage(meta)).toMatch(/may have been carried out: look before you repeat it\.$/);
});

test('what a store itself says of a 503 stays', () => {
  const error = new ApiError('service_unavailable', { message: 'The scales are being calibrated.' });
  expect(withOutageMessage(error, 'other')).toBe(error);
});

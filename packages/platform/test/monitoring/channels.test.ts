import { AsyncLocalStorage } from 'node:async_hooks';
import { channel, tracingChannel } from 'node:diagnostics_channel';
import { createCaller, post, rpcPath } from '@animal-store/platform/testing';
import type { FastifyRequest } from 'fastify';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { create, list, newItem, OTHER_MODEL, read, readOthers, TABLE } from '#operations-under-test';
import { startService, type TestService } from '../support/test-service.js';

interface RequestMessage {
  readonly request: FastifyRequest;
  readonly calls: readonly string[];
  readonly texts: object;
  readonly report?: { readonly operation: string; readonly protocol: string; readonly status: number };
}

const lines: Record<string, unknown>[] = [];
let service: TestService;
let call: ReturnType<typeof createCaller>;
beforeAll(async () => {
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  service = await startService({ log });
  call = createCaller(service);
});
afterAll(() => service.close());

const TRACING = ['request', 'operation', 'statement', 'batch'].map((name) => `animal-store.${name}`);

/** Subscribes to one event of a channel until the end of the test, and returns what has been published. */
function record<Message extends object>(name: string): Message[] {
  const messages: Message[] = [];
  const keep = (message: unknown) => void messages.push(message as Message);
  channel(name).subscribe(keep);
  onTestFinished(() => void channel(name).unsubscribe(keep));
  return messages;
}

test('nothing is published unless somebody listens', async () => {
  for (const name of TRACING) expect(tracingChannel(name).hasSubscribers, name).toBe(false);
  expect(channel('animal-store.batch.call').hasSubscribers).toBe(false);
});

test('a request is published from its arrival to the end of its response, over both protocols, refused or not', async () => {
  const messages = record<RequestMessage>('tracing:animal-store.request:asyncEnd');
  await call(create.path, post(newItem('Miso')));
  await call(`${rpcPath(`${list.name},${read.name}`, { 0: {}, 1: read.inputOf(1) })}&batch=1`);
  await call(list.path, { key: null });
  await call('/health/ready', { key: null });
  await expect.poll(() => messages.length).toBe(3);
  expect(
    messages.map(({ calls, report }) => [calls, report?.operation, report?.protocol, report?.status]),
  ).toEqual([
    [[create.name], create.name, 'rest', 201],
    [[list.name, read.name], 'batch', 'trpc', 200],
    [[list.name], list.name, 'rest', 401],
  ]);
  expect(messages[0]?.request.admission.apiKey).toMatchObject({ plan: 'enterprise' });
});

test('what a client makes up is published without a key in it, however that is written', async () => {
  const messages = record<RequestMessage>('tracing:animal-store.request:start');
  const { key } = service;
  const escaped = `%${key.charCodeAt(0).toString(16)}${key.slice(1)}`;
  await call(`/v1/${escaped}?k=${key}&e=${escaped}`, { headers: { 'user-agent': `x${key}` } });
  const hint = `${key.slice(0, 12)}…`;
  expect(messages.map(({ texts }) => texts)).toEqual([
    { path: `/v1/${hint}`, query: `k=${hint}&e=${hint}`, userAgent: `x${hint}` },
  ]);
});

test('every call of an operation is published with its key, those of a batch one by one', async () => {
  const calls = record<{ operation: string; plan: string }>('tracing:animal-store.operation:asyncEnd');
  await call(`${rpcPath(`${list.name},${list.name}`, { 0: {}, 1: {} })}&batch=1`);
  await call(create.path, post(newItem('')));
  expect(calls.map(({ operation, plan }) => [operation, plan])).toEqual([
    [list.name, 'enterprise'],
    [list.name, 'enterprise'],
    [create.name, 'enterprise'],
  ]);
});

test('a statement runs in the context of all the calls that it serves', async () => {
  const waiting = record<object>('animal-store.batch.call');
  const served = new AsyncLocalStorage<{ readonly calls: readonly object[] }>();
  const { start } = tracingChannel<unknown, { readonly calls: readonly object[] }>('animal-store.batch');
  start.bindStore(served);
  onTestFinished(() => void start.unbindStore(served));
  const statements: [name: string, calls: readonly object[]][] = [];
  const note = (statement: unknown) =>
    void statements.push([(statement as { name: string }).name, served.getStore()?.calls ?? []]);
  channel('tracing:animal-store.statement:start').subscribe(note);
  onTestFinished(() => void channel('tracing:animal-store.statement:start').unsubscribe(note));

  await Promise.all([1, 2, 3].map((id) => service.items.get(id)));
  const gets = statements.filter(([name]) => name.startsWith(`${TABLE}-get`));
  expect(gets.flatMap(([, calls]) => calls)).toHaveLength(3);
  for (const [, calls] of gets) for (const each of calls) expect(waiting).toContain(each);
});

test("Prisma's statements are published by model and operation", async () => {
  const statements = record<{ name: string }>('tracing:animal-store.statement:start');
  await readOthers(await service.database.loadPrisma());
  expect(statements.map(({ name }) => name)).toContain(`${OTHER_MODEL}.findMany`);
});

test("a subscriber's ids are on every log line of the request, which runs in its stores", async () => {
  const storage = new AsyncLocalStorage<string>();
  const ids = { trace_id: '4bf92f3577b34da6a3ce929d0e0e4736', span_id: '00f067aa0ba902b7' };
  const { start } = tracingChannel<unknown, RequestMessage>('animal-store.request');
  start.bindStore(storage, ({ request }) => {
    Object.assign(request.report, { traceIds: ids });
    return request.id;
  });
  onTestFinished(() => void start.unbindStore(storage));
  const operations: (string | undefined)[] = [];
  const note = () => void operations.push(storage.getStore());
  channel('tracing:animal-store.operation:start').subscribe(note);
  onTestFinished(() => void channel('tracing:animal-store.operation:start').unsubscribe(note));

  const { headers } = await call(list.path, { headers: { 'x-request-id': 'traced' } });
  expect(headers.get('x-request-id')).toBe('traced');
  expect(operations).toEqual(['traced']);
  await expect.poll(() => lines.find(({ reqId }) => reqId === 'traced')).toMatchObject(ids);
});

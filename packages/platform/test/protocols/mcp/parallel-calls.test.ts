import { createCaller, message, post, toolCall } from '@animal-store/platform/testing';
import { Server } from '@modelcontextprotocol/server';
import { pino } from 'pino';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { definition, list } from '#operations-under-test';
import { createProcedure } from '../../../src/operations/builder.js';
import { INPUT_ERROR, int64 } from '../../../src/operations/input.js';
import { listOperations } from '../../../src/operations/list-operations.js';
import { createRouter, type Resource } from '../../../src/operations/resource.js';
import { createContextFactory } from '../../../src/protocols/context.js';
import type { ToolExchange } from '../../../src/protocols/mcp/call-tool.js';
import { createPlainCalls } from '../../../src/protocols/mcp/plain-calls.js';
import { createTools } from '../../../src/protocols/mcp/tools.js';
import { startService } from '../../support/test-service.js';

// All plain calls share one server of the SDK.

/** The calls that wait, in the order in which they came, and what ends each */
let waiting: (() => void)[] = [];

/** Waits until the test lets it go on, and returns what it was given. */
const hold = createProcedure()
  .meta({
    openapi: { method: 'GET', path: '/held/{n}', summary: 'Hold' },
    stability: 'beta',
    scope: list.scope,
  })
  .input(z.object({ n: int64().meta({ examples: [7] }) }, { error: INPUT_ERROR }))
  .output(
    z.object({ n: int64(), caller: z.string() }).meta({ id: 'Held', examples: [{ n: 7, caller: 'x' }] }),
  )
  .query(async ({ input: { n }, ctx }) => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return { n, caller: ctx.apiKey.id };
  });
const held: Resource = {
  name: 'held',
  description: 'Calls that wait',
  createStore: () => ({}),
  procedures: { hold },
};

afterEach(() => {
  waiting = [];
  vi.restoreAllMocks();
});

const router = createRouter([held]);
const operations = listOperations(router);
const createContext = createContextFactory({
  operations,
  stores: {},
  revokeKey: async () => {},
  limitsPer: 'key',
  now: Date.now,
});

/** A request of this caller that is admitted, as far as a call reads it. */
function admit(caller: string): ToolExchange {
  const admission = { apiKey: { id: caller, scopes: [list.scope] }, limits: [] };
  return { request: { admission, headers: {} }, reply: {}, createContext } as unknown as ToolExchange;
}

const bodyOf = (id: string | number, n: number) => ({
  ...JSON.parse(String(toolCall('hold', { n }).body)),
  id,
});

test('a thousand calls at once, of callers with the same ids, each get their own result in any order', async () => {
  const answer = createPlainCalls(definition, createTools(operations, router));
  const IDS = ['x', '', 0, -1, 1, Number.MAX_SAFE_INTEGER];
  const calls = Array.from({ length: 1_000 }, (_, n) => ({ n, caller: `caller ${n}`, id: IDS[n % 6] ?? 0 }));
  const answers = calls.map(({ n, caller, id }) => answer(admit(caller), bodyOf(id, n)));
  await expect.poll(() => waiting.length).toBe(calls.length);
  for (const end of waiting.toReversed()) end();
  for (const [index, text] of (await Promise.all(answers)).entries()) {
    const { n, caller, id } = calls[index] as (typeof calls)[number];
    expect(JSON.parse(String(text))).toMatchObject({ id, result: { structuredContent: { n, caller } } });
  }
});

async function startHolding() {
  const errors: { readonly err?: { readonly message: string } }[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => void errors.push(JSON.parse(line)) });
  const service = await startService({ log, resources: [held] });
  onTestFinished(() => service.close());
  return { service, call: createCaller(service), errors };
}

test('what one caller sends cancels no call of another', async () => {
  const { service, call, errors } = await startHolding();
  const { key } = await service.keys.create({ name: 'other', plan: 'pro', expiresAt: null });
  const call1 = call('/mcp', toolCall('hold', { n: 1 }));
  await expect.poll(() => waiting.length).toBe(1);
  for (const requestId of [0, 1, 2, '1']) {
    const cancelled = { method: 'notifications/cancelled', params: { requestId } };
    for (const init of [post({ jsonrpc: '2.0', ...cancelled }), message(cancelled.method, cancelled.params)])
      expect((await call('/mcp', { ...init, key })).status).toBeLessThan(500);
    const answered = { jsonrpc: '2.0', id: requestId, result: {} };
    expect((await call('/mcp', { ...post(answered), key })).status).toBe(202);
  }
  waiting[0]?.();
  expect((await call1).body).toMatchObject({ id: 1, result: { structuredContent: { n: 1 } } });
  expect(errors).toEqual([]);
});

test('callers that go away leave the others their answers', async () => {
  const { call } = await startHolding();
  const gone = new AbortController();
  const cut = [1, 2, 3].map((n) => call('/mcp', { ...toolCall('hold', { n }), signal: gone.signal }));
  const kept = [4, 5, 6].map((n) => call('/mcp', toolCall('hold', { n })));
  await expect.poll(() => waiting.length).toBe(6);
  gone.abort();
  await Promise.allSettled(cut);
  for (const end of waiting) end();
  const results = (await Promise.all(kept)).map(({ body }) => body.result.structuredContent.n);
  expect(results).toEqual([4, 5, 6]);
});

test('a result that the SDK refuses is a failure of the service, and the tool runs once', async () => {
  const { call, errors } = await startHolding();
  vi.spyOn(Server.prototype, 'projectCallToolResult').mockReturnValueOnce({ content: 'nonsense' } as never);
  const failed = call('/mcp', toolCall('hold', { n: 1 }));
  await expect.poll(() => waiting.length).toBe(1);
  waiting[0]?.();
  const { status, body } = await failed;
  expect([status, body]).toEqual([500, expect.objectContaining({ code: 'internal_error' })]);
  expect(errors.map(({ err }) => err?.message)).toEqual([
    expect.stringContaining('Invalid tools/call result'),
  ]);
  expect(waiting).toHaveLength(1);
});

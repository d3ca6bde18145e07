import { channel } from 'node:diagnostics_channel';
import { createCaller, oldToolCall, toolCall } from '@animal-store/platform/testing';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { resources } from '#operations-under-test';
import { UsageCounter } from '../../../src/usage/counter.js';
import type { UsageStore } from '../../../src/usage/store.js';
import { deprecated } from '../../support/deprecated.js';
import { startService } from '../../support/test-service.js';

const { name, input } = deprecated;
const base64 = `=?base64?${Buffer.from(name).toString('base64')}?=`;

/** What the head of a call may say of it, and what may be left for the body to tell. */
const CALLS: readonly (readonly [head: string, init: RequestInit])[] = [
  ['nothing', oldToolCall(name, input)],
  ['the method', oldToolCall(name, input, { 'mcp-method': 'tools/call' })],
  ['the name', oldToolCall(name, input, { 'mcp-name': name })],
  ['both', oldToolCall(name, input, { 'mcp-method': 'tools/call', 'mcp-name': name })],
  ['both, in Base64', oldToolCall(name, input, { 'mcp-method': 'tools/call', 'mcp-name': base64 })],
  ['both, as the newest revision demands', toolCall(name, input)],
];

test.each(CALLS)(
  'a call whose head says %s is known to usage, log, metrics and traces, and says that it is deprecated',
  async (_head, init) => {
    const lines: { readonly msg?: string; readonly operation?: string }[] = [];
    const traced: unknown[] = [];
    const trace = (message: unknown) =>
      void traced.push((message as { report: { operation: string } }).report.operation);
    channel('tracing:animal-store.request:asyncEnd').subscribe(trace);
    onTestFinished(() => void channel('tracing:animal-store.request:asyncEnd').unsubscribe(trace));
    const now = () => Date.parse('2026-01-01');
    const usage = new UsageCounter({ store: {} as UsageStore, operations: [name], now, warn: () => {} });
    const count = vi.spyOn(usage, 'count');
    const service = await startService({
      resources: [...resources, deprecated.resource],
      log: pino({}, { write: (line: string) => lines.push(JSON.parse(line)) }),
      usage,
      now,
    });
    onTestFinished(() => service.close());
    const { status, headers, body } = await createCaller(service)('/mcp', init);
    expect([status, body.result.structuredContent]).toEqual([200, { id: input.oldId }]);
    expect(headers.get('deprecation')).toBe('@1764892800');
    expect(headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
    const counted = count.mock.calls.filter(([, calls]) => calls.length > 0);
    expect(counted).toEqual([[expect.any(String), [name], 'requests']]);
    await expect.poll(() => lines.find(({ msg }) => msg === 'request')?.operation).toBe(name);
    expect(traced).toEqual([name]);
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    expect(metrics).toContain(
      `boatyard_http_request_duration_seconds_count{operation="${name}",protocol="mcp",status="200"} 1`,
    );
  },
);

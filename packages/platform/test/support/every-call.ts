import { setTimeout as delay } from 'node:timers/promises';
import { type Caller, post, type TestResponse, toolCall, untilServed } from '@animal-store/platform/testing';
import { appRouter, create, resources } from '#operations-under-test';
import { listOperations } from '../../src/operations/list-operations.js';
import {
  bodyOf,
  callRpc,
  existingPath,
  ordinaryInit,
  readPathParameters,
  requiredParameters,
  requiredQuery,
} from './document-requests.js';
import { createChecker } from './openapi-checker.js';

/** One operation over one protocol. */
export interface EveryCall {
  readonly operation: string;
  readonly protocol: 'REST' | 'tRPC' | 'MCP';
  readonly isRead: boolean;
  /** Resolves with the status of the response, or of the error of a tool. */
  send(call: Caller): Promise<number>;
}

/**
 * Calls of every operation over every protocol, made from the document alone, so that an operation that is added meets the
 * same faults as the others. Those with an id in their path are for items that have just been added. An operation that ends
 * its key has one of its own, which stays valid as long as the call fails.
 *
 * @param call of a service that can add the items; the calls may be sent to another one
 * @param endable a further key with all scopes
 */
export async function listEveryCall(
  call: Caller,
  endable: { readonly key: string; readonly hint: string },
): Promise<EveryCall[]> {
  const { operations } = createChecker(resources);
  const tools = listOperations(appRouter).filter(({ tool }) => tool !== false);
  const calls: EveryCall[] = [];
  // The examples name some of them.
  for (let n = 0; n < 10; n += 1) await untilServed(() => call(create.path, post(create.body)));
  for (const operation of operations) {
    const { operationId, method } = operation;
    const values = { hint: endable.hint };
    const own = 'hint' in requiredParameters(operation) ? { key: endable.key } : {};
    const path = await existingPath(operations, operation, call);
    const input = {
      ...readPathParameters(operation, path),
      ...requiredParameters(operation, values),
      ...(bodyOf(operation) as object | undefined),
    };
    const add = (protocol: EveryCall['protocol'], send: EveryCall['send']) =>
      calls.push({ operation: operationId, protocol, isRead: method === 'GET', send });
    const address = `/v1${path}${requiredQuery(operation, values)}`;
    add('REST', async (to) => (await to(address, { ...ordinaryInit(operation), ...own })).status);
    add('tRPC', async (to) => (await callRpc(to, operation, input, own)).status);
    if (tools.some(({ name }) => name === operationId))
      add('MCP', async (to) => statusOfTool(await to('/mcp', { ...toolCall(operationId, input), ...own })));
  }
  return calls;
}

export const nameOf = ({ operation, protocol }: EveryCall) => `${operation} over ${protocol}`;

/** How often every read is called over every protocol, and every write over one of them */
const INTERVAL_MS = 100;
/** What operators' machines poll */
export const PROBES = ['/health/ready', '/health/live', '/metrics'];

export interface Outcome {
  /** What each read, each write and each probe was answered with */
  readonly statuses: ReadonlyMap<string, ReadonlySet<number>>;
  readonly counts: { readonly reads: number; readonly writes: number; readonly probes: number };
  /** The most that there were at once */
  readonly connections: number;
  readonly p99Ms: number;
}

/** Calls everything for so many seconds: reads one after the other, writes and probes beside them. `countConnections` is of PostgreSQL's. */
export async function callEverything(
  { url, call }: { readonly url: string; readonly call: Caller },
  calls: readonly EveryCall[],
  seconds: number,
  countConnections: () => Promise<number>,
): Promise<Outcome> {
  const statuses = new Map<string, Set<number>>();
  const note = (name: string, status: number) =>
    statuses.set(name, (statuses.get(name) ?? new Set()).add(status));
  const reads = calls.filter(({ isRead }) => isRead);
  const writes = calls.filter(({ isRead }) => !isRead);
  const operations = [...new Set(writes.map(({ operation }) => operation))];
  const durationsMs: number[] = [];
  const pending: Promise<unknown>[] = [];
  let connections = 0;
  let probes = 0;
  const endsAt = performance.now() + seconds * 1_000;
  for (let n = 0; performance.now() < endsAt; n += 1) {
    for (const operation of operations) {
      const protocols = writes.filter((each) => each.operation === operation);
      const write = protocols[n % protocols.length] as EveryCall;
      pending.push(write.send(call).then((status) => note(nameOf(write), status)));
    }
    for (const read of reads) {
      const startedAt = performance.now();
      note(nameOf(read), await read.send(call));
      durationsMs.push(performance.now() - startedAt);
    }
    for (const path of PROBES) pending.push(fetch(url + path).then(({ status }) => note(path, status)));
    probes += PROBES.length;
    connections = Math.max(connections, await countConnections());
    await delay(INTERVAL_MS);
  }
  await Promise.all(pending);
  durationsMs.sort((a, b) => a - b);
  return {
    statuses,
    counts: { reads: durationsMs.length, writes: pending.length, probes },
    connections,
    p99Ms: durationsMs[Math.ceil(0.99 * durationsMs.length) - 1] ?? 0,
  };
}

/** An error of an operation is a result, whose HTTP status is 200. */
function statusOfTool({ status, body }: TestResponse): number {
  return body?.result?.isError ? body.result.structuredContent.status : status;
}

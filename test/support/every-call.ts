import { listOperations } from '../../src/platform/operations/list-operations.js';
import {
  bodyOf,
  callRpc,
  existingPath,
  ordinaryInit,
  readPathParameters,
  requiredParameters,
  requiredQuery,
} from './document-requests.js';
import { toolCall } from './mcp.js';
import { createChecker } from './openapi-checker.js';
import { appRouter, resources } from './operations-under-test.js';
import type { Caller, TestResponse } from './test-service.js';

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

/** An error of an operation is a result, whose HTTP status is 200. */
function statusOfTool({ status, body }: TestResponse): number {
  return body?.result?.isError ? body.result.structuredContent.status : status;
}

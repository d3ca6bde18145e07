import type { Call } from './call.js';
import type { Caller } from './callers.js';
import { operationOf } from './operations.js';

/** One HTTP request: a call over REST, or one or several over tRPC. */
export interface SoakRequest {
  /** Sent as X-Request-Id; unique */
  readonly id: string;
  readonly caller: Caller;
  readonly protocol: 'rest' | 'trpc';
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  readonly calls: readonly Call[];
  readonly isBatch: boolean;
  readonly key: SentKey | undefined;
}

/** An Idempotency-Key that several requests may carry. */
interface SentKey {
  readonly value: string;
  /** How many responses were not marked as a replay */
  firstResponses: number;
}

let requestCount = 0;
const nextId = () => {
  requestCount += 1;
  return `soak-${requestCount}`;
};

export interface RequestOptions {
  readonly caller: Caller;
  /** tRPC makes a batch of several calls, and of one too if `isBatch`. */
  readonly protocol: 'rest' | 'trpc';
  readonly isBatch?: boolean;
  readonly hasKey?: boolean;
}

export function toRequest(
  calls: readonly Call[],
  { caller, protocol, isBatch = calls.length > 1, hasKey = false }: RequestOptions,
): SoakRequest {
  const id = nextId();
  const key = hasKey ? { value: `key-${id}`, firstResponses: 0 } : undefined;
  const target = protocol === 'rest' ? restTarget(calls[0] as Call) : rpcTarget(calls, isBatch);
  return { id, caller, protocol, ...target, calls, isBatch, key };
}

/** Sends the same bytes again, under another X-Request-Id. */
export function repeat(request: SoakRequest): SoakRequest {
  return { ...request, id: nextId(), calls: request.calls.map((call) => call.again?.() ?? call) };
}

function restTarget({ operation, input }: Call): Pick<SoakRequest, 'method' | 'path' | 'body'> {
  const { method, path, parameters } = operationOf(operation);
  const members = Object.entries(input);
  const isIn = (place: 'path' | 'query') =>
    members.filter(([member]) => parameters.some((each) => each.name === member && each.in === place));
  const filled = isIn('path').reduce((to, [name, value]) => to.replace(`{${name}}`, String(value)), path);
  const query = new URLSearchParams(isIn('query').map(([name, value]) => [name, String(value)]));
  const inBody = members.filter(([member]) => parameters.every(({ name }) => name !== member));
  const body = inBody.length > 0 ? JSON.stringify(Object.fromEntries(inBody)) : undefined;
  return { method, path: `/v1${filled}${query.size > 0 ? `?${query}` : ''}`, body };
}

function rpcTarget(calls: readonly Call[], isBatch: boolean): Pick<SoakRequest, 'method' | 'path' | 'body'> {
  const names = calls.map(({ operation }) => operation).join();
  const inputs = calls.map(({ input }) => input);
  const input = JSON.stringify(isBatch ? { ...inputs } : inputs[0]);
  const path = `/trpc/${names}${isBatch ? '?batch=1' : ''}`;
  const isRead = operationOf((calls[0] as Call).operation).method === 'GET';
  if (!isRead) return { method: 'POST', path, body: input };
  const query = `${isBatch ? '&' : '?'}input=${encodeURIComponent(input)}`;
  return { method: 'GET', path: path + query, body: undefined };
}

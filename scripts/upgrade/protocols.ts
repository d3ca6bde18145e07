import { setTimeout as delay } from 'node:timers/promises';
import type { Members, Operation } from './operations.js';

export const PROTOCOLS = ['REST', 'tRPC', 'MCP'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export interface Call {
  readonly operation: Operation;
  readonly protocol: Protocol;
  /** All members: of the path, the query and the body */
  readonly input: Members;
  readonly key: string;
  readonly idempotencyKey?: string | undefined;
}

export interface Answer {
  /** The status of the response, or of the error that it carries */
  readonly status: number;
  readonly headers: Headers;
  /** Parsed; undefined if there is none */
  // biome-ignore lint/suspicious/noExplicitAny: it has the shape of any operation's answer
  readonly body: any;
}

/** How long all calls of a service together are repeated while the response says so, as on a busy machine */
const PATIENCE_MS = 60_000;
const REPEAT_INTERVAL_MS = 200;
/** Far beyond any time limit of a service */
const MAX_ANSWER_MS = 60_000;
/** A revision of the Model Context Protocol whose calls are stateless and need no further headers. */
const REVISION = '2025-11-25';

/** The request of a call, relative to the service. */
export function toRequest({ operation, protocol, input }: Call): {
  path: string;
  method: string;
  body?: unknown;
} {
  const { name, method } = operation;
  if (protocol === 'MCP')
    return { path: '/mcp', method: 'POST', body: rpc('tools/call', { name, arguments: input }) };
  if (protocol === 'tRPC') {
    const query = `?input=${encodeURIComponent(JSON.stringify(input))}`;
    return method === 'GET'
      ? { path: `/trpc/${name}${query}`, method }
      : { path: `/trpc/${name}`, method: 'POST', body: input };
  }
  const left = new Map(Object.entries(input));
  const take = (member: string) => {
    const value = left.get(member);
    left.delete(member);
    return String(value);
  };
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, member) => encodeURIComponent(take(member)));
  const query = operation.query
    .filter((member) => left.has(member.name))
    .map((member) => [member.name, take(member.name)]);
  const search = query.length === 0 ? '' : `?${new URLSearchParams(query)}`;
  const body = operation.body === undefined ? {} : { body: Object.fromEntries(left) };
  return { path: `/v1${path}${search}`, method, ...body };
}

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });

/** Sends calls to a service. */
export class Sender {
  readonly #url: string;
  readonly #signal: AbortSignal;
  #patienceMs = PATIENCE_MS;

  constructor(url: string, signal: AbortSignal) {
    this.#url = url;
    this.#signal = signal;
  }

  /** Sends a call, and repeats it while the response says that it may be repeated. */
  async send(call: Call): Promise<Answer> {
    const { key, idempotencyKey } = call;
    const headers = {
      ...(call.protocol === 'MCP' && { 'mcp-protocol-version': REVISION }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    };
    for (;;) {
      this.#signal.throwIfAborted();
      const answer = await send(this.#url, { ...toRequest(call), headers, key });
      const mayBeRepeated = answer.status === 503 || answer.body?.code === 'idempotency_key_in_use';
      if (!mayBeRepeated || this.#patienceMs <= 0) return answer;
      this.#patienceMs -= REPEAT_INTERVAL_MS;
      await delay(REPEAT_INTERVAL_MS);
    }
  }
}

/** The names of the tools; none where the service has no MCP. */
export async function listTools(url: string, key: string): Promise<string[]> {
  const headers = { 'mcp-protocol-version': REVISION };
  const request = { path: '/mcp', method: 'POST', body: rpc('tools/list', {}), headers, key };
  const { body } = await send(url, request);
  return (body?.result?.tools ?? []).map(({ name }: { name: string }) => name);
}

interface Request {
  readonly path: string;
  readonly method: string;
  readonly body?: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly key: string;
}

async function send(url: string, request: Request): Promise<Answer> {
  const { path, method, body, headers, key } = request;
  const response = await fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(MAX_ANSWER_MS),
  });
  const text = await response.text();
  const parsed = text === '' ? undefined : JSON.parse(text);
  const failed = parsed?.result?.isError ? parsed.result.structuredContent : undefined;
  return { status: failed?.status ?? response.status, headers: response.headers, body: failed ?? parsed };
}

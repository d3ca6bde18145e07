import { until } from '@animal-store/limits/testing';
import { TRPC_PREFIX } from '../contract/protocol.js';

export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed JSON body, or undefined when there is none */
  // biome-ignore lint/suspicious/noExplicitAny: tests read bodies of every shape
  readonly body: any;
}

/** Sends a request to a path; `key: null` sends no key. */
export type Caller = (path: string, init?: RequestInit & { key?: string | null }) => Promise<TestResponse>;

/** Returns a function that calls the service with its key. */
export function createCaller({ url, key: ownKey }: { readonly url: string; readonly key: string }): Caller {
  return async (path, { key = ownKey, headers, ...init } = {}) => {
    const sent = new Headers(headers);
    if (key !== null && !sent.has('authorization')) sent.set('authorization', `Bearer ${key}`);
    const response = await fetch(url + path, { ...init, headers: sent });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? undefined : parseBody(text, response.status),
    };
  };
}

/** A response that is no JSON, such as one of a proxy, is an error that shows it. */
function parseBody(text: string, status: number) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`No JSON, with the status ${status}: ${text}`, { cause: error });
  }
}

/** Options of `fetch` that post JSON; a string is sent as it is. */
export function post(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  };
}

/** Returns the path of a tRPC query; a string is sent as it is. */
export function rpcPath(procedure: string, input?: unknown): string {
  const json = typeof input === 'string' ? input : JSON.stringify(input);
  return `${TRPC_PREFIX}/${procedure}${json === undefined ? '' : `?input=${encodeURIComponent(json)}`}`;
}

/**
 * Repeats a call while the answer is that it may be repeated, as clients do: on a busy machine a create may take longer than
 * a request, or than another with its key, waits for it.
 */
export function untilServed(send: () => Promise<TestResponse>): Promise<TestResponse> {
  return until(async () => {
    const response = await send();
    const mayBeRepeated = response.status === 503 || response.body?.code === 'idempotency_key_in_use';
    return mayBeRepeated ? undefined : response;
  }, 60_000);
}

/** Repeats each of its calls so, for tests that are about something else than a busy machine. */
export const patient =
  (call: Caller): Caller =>
  (path, init) =>
    untilServed(() => call(path, init));

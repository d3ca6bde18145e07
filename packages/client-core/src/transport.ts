import { rememberCursors } from './pages.js';

/** No response, or an incomplete one: the service may or may not have executed the call. */
export class NetworkError extends Error {
  constructor(url: string, cause: unknown) {
    super(describe(url), { cause });
    this.name = 'NetworkError';
  }
}

/** Browsers do not let a page know whether its request failed because of its origin or for another reason. */
function describe(url: string): string {
  const unreachable = 'The service could not be reached';
  const page = typeof location === 'undefined' ? undefined : location;
  if (page === undefined || new URL(url, page.href).origin === page.origin) return unreachable;
  return `${unreachable}, or its CORS_ORIGINS does not allow ${page.origin}`;
}

/** A response that is not the service's: a proxy's page, for example. */
export class UnexpectedResponseError extends Error {
  constructor({ status, headers }: Response) {
    const type = headers.get('content-type')?.split(';', 1)[0] || 'no media type';
    super(`The response (${status}, ${type}) is not from the service: a proxy or another server sent it`);
    this.name = 'UnexpectedResponseError';
  }
}

/** The options that tRPC's links pass to `fetch`, as far as they are used here */
interface RequestOptions {
  readonly headers?: [string, string][] | Record<string, string>;
  readonly signal?: AbortSignal | null | undefined;
}

/**
 * Wraps `fetch` for tRPC's links. It reads the whole body first, so that a broken connection counts as a network error, and a
 * body that is not JSON keeps its status. `onHeaders` gets the headers of each response about the key.
 *
 * @param own replaces the global `fetch`
 */
export function createTransport(own: typeof fetch | undefined, onHeaders: (headers: Headers) => void) {
  return async (url: unknown, options: RequestInit | RequestOptions = {}): Promise<Response> => {
    const headers = createHeaders(options.headers);
    const { response, text } = await send(own, String(url), { ...options, headers } as RequestInit);
    // A 401 carries the limits of the address, not of the key.
    if (response.status !== 401) onHeaders(response.headers);
    const body = parseBody(text, String(url));
    rememberCursors(response.headers, body);
    return Object.assign(response, { json: async () => body });
  };
}

/**
 * @throws TypeError for values that no header can carry; unlike the platform's, its message does not repeat the API key
 */
function createHeaders(init: RequestOptions['headers'] | RequestInit['headers']): Headers {
  try {
    return new Headers(init);
  } catch {
    throw new TypeError('The API key or the Idempotency-Key has characters that no header can carry');
  }
}

async function send(own: typeof fetch | undefined, url: string, options: RequestInit) {
  const call = own ?? fetch;
  if (own === undefined && url.startsWith('/') && typeof location === 'undefined')
    throw new TypeError(
      "baseUrl '' is the origin of the page, and there is no page here: give the service's address",
    );
  let response: Response | undefined;
  try {
    response = await call(url, options);
    return { response, text: await response.text() };
  } catch (cause) {
    const refusal = response === undefined ? readRefusal(cause) : undefined;
    if (refusal !== undefined) throw new TypeError(`fetch refused the request: ${refusal}`, { cause });
    const isRefused = own === undefined ? () => cannotBeSent(url, options) : () => isMistake(cause);
    if (options.signal?.aborted || (response === undefined && isRefused())) throw cause;
    throw new NetworkError(url, cause);
  }
}

/**
 * Why Node.js's fetch sent nothing, such as `bad port`. Network failures have a code instead. Browsers do not let a page
 * distinguish the two.
 */
function readRefusal(error: unknown): string | undefined {
  if (!(error instanceof TypeError) || error.message !== 'fetch failed') return undefined;
  const { cause } = error;
  return cause instanceof Error && !('code' in cause) && cause.message !== '' ? cause.message : undefined;
}

/** How browsers, Node.js, Deno and React Native begin the TypeError of a request that failed on the network */
const NETWORK_FAILURE =
  /^(?:fetch failed|failed to fetch|load failed|network|a network|error sending request|the (?:internet|network) connection|terminated)/i;

/** Whether the caller's own `fetch` made a mistake or refused the request: a retry mends neither. */
function isMistake(error: unknown): boolean {
  if (error instanceof TypeError) return !NETWORK_FAILURE.test(error.message);
  return error instanceof ReferenceError || error instanceof RangeError || error instanceof SyntaxError;
}

/** Whether the global `fetch` sends nothing: because of the address, or of a signal from another platform. */
function cannotBeSent(url: string, options: RequestInit): boolean {
  if (typeof Request === 'undefined') return false;
  try {
    void new Request(url, options);
    return false;
  } catch {
    return true;
  }
}

/**
 * When parsing throws, tRPC drops the response and its status. When parsing returns undefined, tRPC rejects and keeps the
 * response. So this returns undefined, also for an array that is not as long as the batch, which only another server sends.
 */
function parseBody(text: string, url: string): unknown {
  try {
    const body: unknown = JSON.parse(text);
    return Array.isArray(body) && body.length !== countCalls(url) ? undefined : body;
  } catch {
    return undefined;
  }
}

/** A batch has the names of its calls in its path. */
function countCalls(url: string): number {
  const [path = ''] = url.split('?', 1);
  return path.slice(path.lastIndexOf('/')).split(/,|%2C/i).length;
}

/** No response, or an incomplete one: the service may or may not have executed the call. */
export class NetworkError extends Error {
  constructor(url: string, cause: unknown) {
    super(describe(url), { cause });
    this.name = 'NetworkError';
  }
}

/** Browsers do not tell a page whether its request was rejected because of its origin or failed for another reason. */
function describe(url: string): string {
  const unreachable = 'The service could not be reached';
  const page = typeof location === 'undefined' ? undefined : location;
  if (page === undefined || new URL(url, page.href).origin === page.origin) return unreachable;
  return `${unreachable}, or its CORS_ORIGINS does not allow ${page.origin}`;
}

/** The options that tRPC's links pass to `fetch`, as far as they are used here */
interface RequestOptions {
  readonly headers?: [string, string][] | Record<string, string>;
  readonly signal?: AbortSignal | null | undefined;
}

/**
 * Wraps `fetch` for tRPC's links. It reads the whole body before it returns, so that a connection that breaks counts as
 * a network error and a body that is not JSON keeps its status, and passes the headers of each response to `onHeaders`.
 */
export function createTransport(getFetch: () => typeof fetch, onHeaders: (headers: Headers) => void) {
  return async (url: unknown, options: RequestInit | RequestOptions = {}): Promise<Response> => {
    const headers = createHeaders(options.headers);
    const { response, text } = await send(getFetch(), String(url), { ...options, headers } as RequestInit);
    onHeaders(response.headers);
    return Object.assign(response, { json: async () => parseJson(text) });
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

async function send(fetch: typeof globalThis.fetch, url: string, options: RequestInit) {
  try {
    const response = await fetch(url, options);
    return { response, text: await response.text() };
  } catch (cause) {
    if (options.signal?.aborted) throw cause;
    throw new NetworkError(url, cause);
  }
}

/** When parsing throws, tRPC drops the response and with it the status; it rejects undefined but keeps the response. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

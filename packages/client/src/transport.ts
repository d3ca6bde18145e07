/** The service was not reached, or its answer broke off: whether it has done what was asked is not known. */
export class NetworkError extends Error {
  constructor(cause: unknown) {
    super('The service could not be reached', { cause });
    this.name = 'NetworkError';
  }
}

/** What this reads of what tRPC's links hand to their `fetch` */
interface Init {
  readonly headers?: [string, string][] | Record<string, string>;
  readonly signal?: AbortSignal | null | undefined;
}

/**
 * The `fetch` of tRPC's links. It reads the whole answer, so that one that breaks off is known as the network's failure
 * and one that is not JSON keeps its status, and shows the headers of each to `note`.
 */
export function createTransport(send: () => typeof fetch, note: (headers: Headers) => void) {
  return async (url: unknown, init: RequestInit | Init = {}): Promise<Response> => {
    const headers = toHeaders(init.headers);
    const { response, text } = await exchange(send(), String(url), { ...init, headers } as RequestInit);
    note(response.headers);
    return Object.assign(response, { json: async () => parse(text) });
  };
}

/** @throws TypeError for what no header can carry: in words that, unlike the platform's, do not repeat the API key. */
function toHeaders(fields: Init['headers'] | RequestInit['headers']): Headers {
  try {
    return new Headers(fields);
  } catch {
    throw new TypeError('The API key or the Idempotency-Key has characters that no header can carry');
  }
}

async function exchange(send: typeof fetch, url: string, init: RequestInit) {
  try {
    const response = await send(url, init);
    return { response, text: await response.text() };
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw new NetworkError(cause);
  }
}

/** tRPC refuses what is undefined, together with the response; of what it cannot parse it forgets the response. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

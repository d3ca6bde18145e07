import type { ClientOptions, ErrorCode } from '@animal-store/client';
import { ApiError } from '../../packages/platform/src/errors/api-error.js';
import { toErrorShape } from '../../packages/platform/src/operations/builder.js';
import { errorOf } from '../../packages/platform/test/support/error-table.js';

/** Responds to one request in place of the service; `send` sends the real request. */
export type Intercept = (send: () => Promise<Response>, init: RequestInit) => Response | Promise<Response>;

export interface SentRequest {
  readonly url: string;
  readonly body: unknown;
  readonly headers: Headers;
}

/** A `fetch` whose first requests are intercepted as given and whose others are real. Records every request. */
export function interceptFetch(...intercepts: Intercept[]): { fetch: typeof fetch; sent: SentRequest[] } {
  const sent: SentRequest[] = [];
  return {
    sent,
    fetch: async (input, init = {}) => {
      sent.push({ url: String(input), body: init.body, headers: new Headers(init.headers) });
      const send = () => fetch(input, init);
      return (intercepts[sent.length - 1] ?? send)(send, init);
    },
  };
}

/** The service's own error response to a call outside of a batch. */
export function respondWithError(code: ErrorCode, retryAfter?: string): Intercept {
  const error = new ApiError({ code, definition: errorOf(code) }, { message: `It is ${code}.` });
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  return () => Response.json({ error: toErrorShape(error) }, { status: error.status, headers });
}

/** The HTML page of a proxy in front of the service. */
export function respondAsProxy(status: number, headers: Record<string, string> = {}): Intercept {
  return () =>
    new Response('<h1>Gateway</h1>', { status, headers: { 'content-type': 'text/html', ...headers } });
}

export const failConnection: Intercept = () => {
  throw new TypeError('fetch failed');
};

/** The service executes the request, but its response is lost. */
export const loseResponse: Intercept = async (send) => {
  await (await send()).text();
  throw new TypeError('fetch failed');
};

/** The connection breaks after the response headers. */
export const truncateBody: Intercept = async (send) => {
  const { status, headers } = await send();
  return new Response(new ReadableStream({ pull: (body) => body.error(new TypeError('terminated')) }), {
    status,
    headers,
  });
};

export const neverRespond: Intercept = (_send, { signal }) =>
  new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));

/** A clock on which waits take no time and are recorded, in milliseconds. Random numbers are always 0.5. */
export function createFakeClock(): { clock: NonNullable<ClientOptions['clock']>; waits: number[] } {
  const waits: number[] = [];
  let now = 1_800_000_000_000;
  return {
    waits,
    clock: {
      now: () => now,
      random: () => 0.5,
      async sleep(milliseconds) {
        waits.push(milliseconds);
        now += milliseconds;
      },
    },
  };
}

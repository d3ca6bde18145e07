import type { ClientOptions, ErrorCode } from '@animal-store/client';
import { ApiError } from '../../src/errors.js';
import { toErrorShape } from '../../src/trpc.js';

/** What stands in for one exchange; `send` does the real one. */
export type Fault = (send: () => Promise<Response>, init: RequestInit) => Response | Promise<Response>;

export interface SentRequest {
  readonly url: string;
  readonly body: unknown;
  readonly headers: Headers;
}

/** A `fetch` whose first exchanges are the given faults; all others are real. Keeps what it was asked. */
export function interpose(...faults: Fault[]): { fetch: typeof fetch; sent: SentRequest[] } {
  const sent: SentRequest[] = [];
  return {
    sent,
    fetch: async (input, init = {}) => {
      sent.push({ url: String(input), body: init.body, headers: new Headers(init.headers) });
      const send = () => fetch(input, init);
      return (faults[sent.length - 1] ?? send)(send, init);
    },
  };
}

/** The service's own answer with an error, as to a call outside of a batch. */
export function refuse(code: ErrorCode, retryAfter?: string): Fault {
  const error = new ApiError(code, { message: `It is ${code}.` });
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  return () => Response.json({ error: toErrorShape(error) }, { status: error.status, headers });
}

/** What a proxy answers in the service's place. */
export function misroute(status: number, headers: Record<string, string> = {}): Fault {
  return () =>
    new Response('<h1>Gateway</h1>', { status, headers: { 'content-type': 'text/html', ...headers } });
}

export const reset: Fault = () => {
  throw new TypeError('fetch failed');
};

/** The service gets the request, and its answer is lost. */
export const loseAnswer: Fault = async (send) => {
  await (await send()).text();
  throw new TypeError('fetch failed');
};

/** The head of the answer arrives, and its body breaks off. */
export const breakOff: Fault = async (send) => {
  const { status, headers } = await send();
  return new Response(new ReadableStream({ pull: (body) => body.error(new TypeError('terminated')) }), {
    status,
    headers,
  });
};

/** Never answers. */
export const hang: Fault = (_send, { signal }) =>
  new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));

/** A clock whose waits take no time and are noted, in milliseconds; chance is always one half. */
export function fakeClock(): { clock: NonNullable<ClientOptions['clock']>; waits: number[] } {
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

import { type Agent, type IncomingHttpHeaders, request as startRequest } from 'node:http';
import { randomInteger, randomOfFaults } from './random.js';
import type { SoakRequest } from './requests.js';

export interface SoakResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Well over the 3 s that a response may take */
const RESPONSE_TIMEOUT_MS = 10_000;
const MAX_KILL_DELAY_MS = 20;

export interface SendOptions {
  readonly port: number;
  readonly agent: Agent;
  /** Whether the client kills its connection: with half of the body sent, or soon after the request */
  readonly isKilled: boolean;
}

/** Resolves with undefined when the client killed the connection first. Rejects when the service did not respond. */
export function sendRequest(
  request: SoakRequest,
  { port, agent, isKilled }: SendOptions,
): Promise<SoakResponse | undefined> {
  const { method, path, body } = request;
  return new Promise((resolve, reject) => {
    const sent = startRequest({ host: '127.0.0.1', port, agent, method, path, headers: toHeaders(request) });
    sent.setTimeout(RESPONSE_TIMEOUT_MS, () => sent.destroy(new Error('No response came in time')));
    let wasKilled = false;
    if (isKilled) {
      setTimeout(
        () => {
          wasKilled = true;
          sent.destroy();
        },
        randomInteger(0, MAX_KILL_DELAY_MS, randomOfFaults),
      );
    }
    const fail = (error: Error) => (wasKilled ? resolve(undefined) : reject(error));
    sent.on('error', fail);
    sent.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('error', fail);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
      );
    });
    if (isKilled && body !== undefined && randomOfFaults() < 0.3) sent.write(body.slice(0, body.length / 2));
    else sent.end(body);
  });
}

function toHeaders({ id, caller, body, key }: SoakRequest): Record<string, string | number> {
  return {
    authorization: `Bearer ${caller.key}`,
    'x-request-id': id,
    ...(body !== undefined && {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    }),
    ...(key !== undefined && { 'idempotency-key': key.value }),
  };
}

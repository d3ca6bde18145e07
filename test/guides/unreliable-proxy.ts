import { once } from 'node:events';
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface UnreliableProxy {
  readonly url: string;
  readonly requestCount: () => number;
  close(): void;
}

interface Answer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string;
}

/**
 * What happens to a request: it is `forwarded` to the service, with headers that replace those of its response, or
 * executed while its response is `lost`, or the connection breaks before it is `sent`, or it is answered by the proxy.
 */
export type Treatment =
  | 'forwarded'
  | 'lost'
  | 'not sent'
  | Answer
  | { readonly replaced: OutgoingHttpHeaders };

export function answerWithError(status: number, code: string, headers: OutgoingHttpHeaders = {}): Answer {
  const body = JSON.stringify({ code, message: `It is ${code}.`, status });
  return { status, headers: { 'content-type': 'application/json', ...headers }, body };
}

/**
 * Forwards to the service, except for the first requests, or for the first with a method, which are treated as given:
 * at once, or when they have come.
 */
export async function startUnreliableProxy(
  target: string,
  treatments: readonly (Treatment | (() => Promise<Treatment>))[],
  treatedMethod?: string,
): Promise<UnreliableProxy> {
  let requestCount = 0;
  const left = [...treatments];
  const server = createServer(async (incoming, response) => {
    requestCount += 1;
    const isTreated = treatedMethod === undefined || incoming.method === treatedMethod;
    const next = (isTreated ? left.shift() : undefined) ?? 'forwarded';
    const treatment = typeof next === 'function' ? await next() : next;
    if (treatment === 'not sent') incoming.socket.destroy();
    else if (treatment === 'lost')
      forward(target, incoming, (answer) => answer.on('end', () => incoming.socket.destroy()).resume());
    else if (typeof treatment === 'object' && 'status' in treatment) {
      incoming.resume();
      response.writeHead(treatment.status, treatment.headers).end(treatment.body);
    } else {
      const replaced = treatment === 'forwarded' ? {} : treatment.replaced;
      forward(target, incoming, (answer) => {
        response.writeHead(answer.statusCode ?? 502, { ...answer.headers, ...replaced });
        answer.pipe(response);
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requestCount: () => requestCount,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function forward(
  target: string,
  incoming: IncomingMessage,
  receive: (answer: IncomingMessage) => void,
): void {
  const { method, headers, url } = incoming;
  const outgoing = request(target + url, { method, headers }, receive);
  outgoing.on('error', () => incoming.socket.destroy());
  incoming.pipe(outgoing);
}

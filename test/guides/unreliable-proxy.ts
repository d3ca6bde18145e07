import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface UnreliableProxy {
  readonly url: string;
  readonly requestCount: () => number;
  close(): void;
}

const DENIED = { code: 'rate_limit_exceeded', message: 'The rate limit is used up.', status: 429 };

/**
 * Forwards to the service, except that the first request is `denied` with a 429 and Retry-After: 1, or is executed while
 * its response is `lost`.
 */
export async function startUnreliableProxy(
  target: string,
  first: 'denied' | 'lost',
): Promise<UnreliableProxy> {
  let requestCount = 0;
  const server = createServer((incoming, response) => {
    requestCount += 1;
    if (requestCount > 1) forward(target, incoming, response);
    else if (first === 'lost') forward(target, incoming, undefined);
    else {
      incoming.resume();
      response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '1' });
      response.end(JSON.stringify(DENIED));
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

/** Without a response to write to, the client's connection is closed when the service has responded. */
function forward(target: string, incoming: IncomingMessage, response: ServerResponse | undefined): void {
  const { method, headers, url } = incoming;
  const outgoing = request(target + url, { method, headers }, (answer) => {
    if (response === undefined) {
      answer.resume().on('end', () => incoming.socket.destroy());
      return;
    }
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  outgoing.on('error', () => incoming.socket.destroy());
  incoming.pipe(outgoing);
}

import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** How much of a process one client, or all together, may occupy. Durations in milliseconds, named as in Node.js. */
export interface ConnectionLimits {
  /** From the first byte, or from connecting when none comes, to the end of the headers */
  readonly headersTimeout: number;
  /** From the first byte to the end of the body */
  readonly requestTimeout: number;
  /** How often the two above are checked: they may fire this much later */
  readonly connectionsCheckingInterval: number;
  /** How long nothing may be received and nothing sent, between the start of a request and the end of its response */
  readonly timeout: number;
  /** How long a connection may be idle between requests */
  readonly keepAliveTimeout: number;
  /** The response to the last of them has `Connection: close` */
  readonly maxRequestsPerSocket: number;
  /** Per process; further ones are closed at once */
  readonly maxConnections: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = {
  // Headers fit into 16 KiB: the slowest honest client sends them in a second or two.
  headersTimeout: 15_000,
  // The slowest mobile networks send 64 KiB in 30 s.
  requestTimeout: 30_000,
  // Every answer comes within a few seconds: after this, the client has left, or does not read what is sent to it.
  timeout: 30_000,
  // Each check walks over all connections; every 5 s, its cost cannot be measured.
  connectionsCheckingInterval: 5_000,
  // Longer than the usual 60 s of proxies, so that they close first: otherwise they might send on a closed connection.
  keepAliveTimeout: 72_000,
  // Lets connections move to new nodes and processes. Spread over 10,000 requests, a new connection costs nothing.
  maxRequestsPerSocket: 10_000,
  // An idle one takes about 10 KB. Running out of file descriptors would be worse, because the database needs some too.
  maxConnections: 10_000,
};

/**
 * Closes a connection after its last request. Node.js has an option for that, but with it, requests pipelined behind
 * the last one get a 503 without a body; here they get no response (RFC 9112, section 9.6).
 */
export function limitRequestsPerSocket(app: FastifyInstance, maxRequests: number): void {
  const counts = new WeakMap<Socket, number>();
  app.addHook('onRequest', (request, reply, next) => {
    const count = (counts.get(request.raw.socket) ?? 0) + 1;
    counts.set(request.raw.socket, count);
    if (count >= maxRequests) reply.header('connection', 'close');
    next();
  });
}

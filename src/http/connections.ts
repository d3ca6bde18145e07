import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** What one client, or all of them, may hold of a process. Durations in milliseconds, under the names that Node.js gives them. */
export interface ConnectionLimits {
  /** From the first byte, or from connecting when none comes, to the end of the headers */
  readonly headersTimeout: number;
  /** From the first byte to the end of the body */
  readonly requestTimeout: number;
  /** How often the two above are checked: they may fire this much later */
  readonly connectionsCheckingInterval: number;
  /** How long a connection may be idle between requests */
  readonly keepAliveTimeout: number;
  /** The response to the last one says `Connection: close` */
  readonly maxRequestsPerSocket: number;
  /** Per process; further ones are closed at once */
  readonly maxConnections: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = {
  // Headers fit into 16 KiB: the slowest honest client sends them in a second or two.
  headersTimeout: 15_000,
  // The slowest mobile networks send 64 KiB in 30 s.
  requestTimeout: 30_000,
  // Walks over all connections; at 5 s the cost cannot be measured.
  connectionsCheckingInterval: 5_000,
  // Longer than the 60 s of usual proxies, so that they close first: else they would send on a closed connection.
  keepAliveTimeout: 72_000,
  // Lets connections move to new nodes and workers; spread over 10,000 requests a new connection costs nothing.
  maxRequestsPerSocket: 10_000,
  // An idle one takes about 10 KB. Refusing is better than running out of descriptors, which hits the database too.
  maxConnections: 10_000,
};

/**
 * Closes a connection after its last request. Node.js has an option for that, but it answers requests pipelined behind the
 * last one with a 503 without a body; here they get no response (RFC 9112, section 9.6).
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

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

/** How much of the rest of a request is dropped before its connection is closed. */
const MAX_DROPPED_BYTES = 1_000_000;
/** After a 413 all that the request has declared is dropped, up to this: its caller has a valid key, whose limits count it. */
const MAX_DECLARED_BYTES = 32_000_000;
/**
 * How fast the rest is read, for all connections together. This takes a tenth of a core; without a bound, eight clients
 * could occupy a core.
 */
const DROPPED_BYTES_PER_MS = 32_000;
/** How long a client that sends more has to read its response before its connection is reset. */
const LINGER_MS = 1_000;

/**
 * Lets the rest of a request arrive after its response, and drops it (RFC 9112, section 9.6). Node.js would close such a
 * connection at once, which resets it while the client still sends: many clients, of Python for example, read only then, and
 * would find a broken connection in place of a 401 or a 413. A connection that stays open would take whatever comes.
 */
export function closeAfterRequests(server: Server): void {
  /** When the next bytes may be read, by performance.now() */
  let nextAt = 0;
  const delay = (bytes: number) => {
    const now = performance.now();
    nextAt = Math.max(nextAt, now) + bytes / DROPPED_BYTES_PER_MS;
    return nextAt - now;
  };
  server.on('connection', (socket) => {
    // Node.js calls it when the last response has been handed over.
    socket.destroySoon = destroyAfterRequest;
  });
  server.on('request', (request, response) => {
    const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
    if (length === undefined && coding === undefined) return;
    // Before Node.js' own listener, which would drop the rest.
    response.prependListener('finish', () => {
      if (!request.complete) dropRest(request, response, delay);
    });
  });
}

/** @param delay after so many bytes, in milliseconds, until further ones may be read */
function dropRest(
  request: IncomingMessage,
  { statusCode }: ServerResponse,
  delay: (bytes: number) => number,
): void {
  const { socket, headers } = request;
  const declared = Number(headers['content-length']);
  let left = statusCode === 413 && declared <= MAX_DECLARED_BYTES ? declared : MAX_DROPPED_BYTES;
  request.on('data', ({ length }: Buffer) => {
    left -= length;
    request.pause();
    if (left >= 0) {
      setTimeout(() => request.resume(), delay(length)).unref();
    } else {
      socket.end();
      setTimeout(() => socket.destroy(), LINGER_MS).unref();
    }
  });
  // Node.js drops by itself what nobody has begun to read.
  request.read();
}

function destroyAfterRequest(this: Socket): void {
  const request = this.debt?.last?.req;
  if (request === undefined || request.complete) {
    Socket.prototype.destroySoon.call(this);
    return;
  }
  this.end();
  request.once('end', () => this.destroy());
}

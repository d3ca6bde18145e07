import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

/** How much of what follows a response is dropped before the connection is closed */
const MAX_DROPPED_BYTES = 1_000_000;
/** After a 413, the whole declared body is dropped, up to this: the caller has a valid key, whose limits count the request. */
const MAX_DECLARED_BYTES = 32_000_000;
/** How long a client that sends more has to read its response before its connection is reset. */
const LINGER_MS = 1_000;

/**
 * Lets the rest of a request arrive after its response, and drops it (RFC 9112, section 9.6). Node.js would close such a
 * connection at once, which resets it while the client still sends. Many clients, in Python for example, read only after
 * they have sent, and would find a broken connection instead of a 401 or a 413. A connection that stays open would accept
 * any amount.
 */
export function closeAfterRequests(server: Server): void {
  server.on('connection', (socket) => {
    // Node.js calls this when the last response has been handed over.
    socket.destroySoon = destroyAfterRequest;
  });
  server.on('request', (request, response) => {
    const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
    if (length === undefined && coding === undefined) return;
    // Runs before the listener of Node.js, which drops the rest unseen unless somebody reads it.
    response.prependOnceListener('finish', () => {
      if (!request.complete) dropRest(request, response);
    });
  });
}

function dropRest(request: IncomingMessage, { statusCode }: ServerResponse): void {
  const declared = Number(request.headers['content-length']);
  let left = statusCode === 413 && declared <= MAX_DECLARED_BYTES ? declared : MAX_DROPPED_BYTES;
  request.read(0);
  request.on('data', ({ length }: Buffer) => {
    left -= length;
    if (left >= 0) return;
    request.pause();
    request.socket.end();
    setTimeout(() => request.socket.destroy(), LINGER_MS).unref();
  });
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

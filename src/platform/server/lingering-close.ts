import type { Server } from 'node:http';
import { Socket } from 'node:net';

/** After a 413 all that the request has declared is dropped, up to this: its caller has a valid key, whose limits count it. */
const MAX_DECLARED_BYTES = 32_000_000;

/**
 * Lets the rest of a request arrive after its response, and drops it (RFC 9112, section 9.6). Node.js would close such a
 * connection at once, which resets it while the client still sends: many clients, of Python for example, read only then, and
 * would find a broken connection in place of a 401 or a 413. A connection that stays open would take whatever comes, which
 * read-bound.ts bounds.
 */
export function closeAfterRequests(server: Server): void {
  server.on('connection', (socket) => {
    // Node.js calls it when the last response has been handed over.
    socket.destroySoon = destroyAfterRequest;
  });
  server.on('request', (request, response) => {
    const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
    if (length === undefined && coding === undefined) return;
    response.once('finish', () => {
      if (request.complete) return;
      const declared = Number(length);
      if (response.statusCode === 413 && declared <= MAX_DECLARED_BYTES)
        request.socket.readBound?.allow(declared);
      request.resume();
    });
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

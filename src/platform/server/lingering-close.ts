import { type Server, Socket } from 'node:net';

/**
 * Lets the rest of a request arrive after the last response on its connection, and drops it (RFC 9112, section 9.6).
 * Node.js closes such a connection at once, which resets it while the client still sends: many clients, of Python for
 * example, read only then, and would find a broken connection in place of a 401 or a 413.
 *
 * The limits on how long a request may take end it, and nothing of it is kept.
 */
export function closeAfterRequests(server: Server): void {
  server.on('connection', (socket) => {
    // Node.js calls it when the last response has been handed over.
    socket.destroySoon = destroyAfterRequest;
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

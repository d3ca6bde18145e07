import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { ApiError } from '../errors.js';

/**
 * Responds to input that Node.js' HTTP parser rejects. There is no request object, so the response is written to the
 * socket, with the same body as every other error, and the connection is closed. It is logged at debug level only:
 * sending garbage needs no key and has no limit, so anybody could fill the log.
 */
export function handleParserError(
  this: Pick<FastifyInstance, 'log'>,
  error: Error & { code?: string },
  socket: Socket,
): void {
  this.log.debug({ code: error.code, address: socket.remoteAddress }, 'malformed HTTP');
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  rejectSocket(socket, describe(error.code));
}

/** Closes a connection with a 400. */
export function rejectSocket(socket: Duplex, message: string): void {
  const { body, status } = new ApiError('invalid_request', { message });
  const payload = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${status} Bad Request\r\nContent-Type: application/json\r\n` +
      `X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none';frame-ancestors 'none'\r\n` +
      `Content-Length: ${Buffer.byteLength(payload)}\r\nConnection: close\r\n\r\n${payload}`,
  );
}

function describe(code: string | undefined): string {
  if (code === 'HPE_HEADER_OVERFLOW') return 'The request line and headers are over 16 KiB.';
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'The request did not arrive in time.';
  return 'The request is not well-formed HTTP/1.1.';
}

import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ConnectionError, FastifyInstance } from 'fastify';
import { addressId } from './client-address.js';

/** How long a rejected client may continue to send. Closing earlier could lose responses: see rejectSocket. */
const LINGER_MS = 1_000;

/** A request line with a method that is well-formed (RFC 9112, section 3). The end of a body may precede it. */
const REQUEST_LINE = /(?:^|[^\s!#$%&'*+.^`|~\w-])[!#$%&'*+.^`|~\w-]+ \S+ HTTP\/1\.[01]\r?$/;
/** The parser's codes for methods that llhttp does not know, or knows from RTSP only */
const METHOD_ERRORS = ['HPE_INVALID_METHOD', 'HPE_INVALID_CONSTANT'];

const rejectedSockets = new WeakSet<Duplex>();

/** Why the input is no request */
export type RefusalReason = 'malformed' | 'header_too_large' | 'too_slow' | 'unknown_method' | 'connect';

/** The response to input that is no request */
export interface Refusal {
  readonly status: number;
  /** Sent as JSON */
  readonly body: object;
}

export type Refuse = (reason: RefusalReason) => Refusal;

/** Responds to what Node.js' HTTP parser rejects. Logged at debug level only: anybody can send garbage. */
export function createParserErrorHandler(refuse: Refuse) {
  return function handleParserError(
    this: Pick<FastifyInstance, 'log'>,
    error: ConnectionError,
    socket: Socket,
  ): void {
    if (error.code === 'ECONNRESET') socket.destroy();
    // The parser also fails on everything that follows.
    if (socket.destroyed || rejectedSockets.has(socket)) return;
    const last = socket.debt?.last;
    // The connection ends with the response to an earlier request anyway (RFC 9112, section 9.6).
    if (last?.req.complete && !last.shouldKeepAlive) return;
    const reqId = randomUUID();
    this.log.debug({ reqId, code: error.code, address: addressId(socket.remoteAddress) }, 'malformed HTTP');
    rejectSocket(socket, refuse(findReason(error)), reqId);
  };
}

/**
 * Rejects what was sent on a connection and closes it. There is no request object, so the response is written to the
 * socket. Earlier requests that have no response yet never get one.
 *
 * The connection is closed in steps (RFC 9112, section 9.6): while the client still sends, closing it at once would reset
 * it, and the client might lose responses that it has not read yet.
 */
export function rejectSocket(socket: Duplex, refusal: Refusal, requestId: string): void {
  rejectedSockets.add(socket);
  // The malformed input may be the body of a request that has its response already, or may follow a response in progress.
  const isAnswered = socket instanceof Socket && socket.debt?.last?.headersSent === true;
  if (socket.writable && !isAnswered) socket.write(formatResponse(refusal, requestId));
  socket.end();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

function formatResponse({ status, body }: Refusal, requestId: string): string {
  const payload = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Date: ${new Date().toUTCString()}`,
    `X-Request-Id: ${requestId}`,
    'Content-Type: application/json',
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    "Content-Security-Policy: default-src 'none';frame-ancestors 'none'",
    `Content-Length: ${Buffer.byteLength(payload)}`,
    'Connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${payload}`;
}

function findReason(error: ConnectionError): RefusalReason {
  if (isMethodUnknown(error)) return 'unknown_method';
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'header_too_large';
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'too_slow' : 'malformed';
}

/** `rawPacket` is what was parsed last, and `bytesParsed` the position of the error in it. */
function isMethodUnknown({ code, rawPacket, bytesParsed }: ConnectionError): boolean {
  if (!Buffer.isBuffer(rawPacket) || !METHOD_ERRORS.includes(code)) return false;
  const start = rawPacket.subarray(0, bytesParsed).lastIndexOf('\n') + 1;
  const end = rawPacket.indexOf('\n', start);
  return end !== -1 && REQUEST_LINE.test(rawPacket.toString('latin1', start, end));
}

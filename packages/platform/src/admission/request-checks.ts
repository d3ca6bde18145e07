import { isIPv6 } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { METHODS_WITH_BODY } from '../contract/protocol.js';
import { ApiError } from '../errors/api-error.js';

/** A name, an IPv4 address or an IPv6 address in brackets, and a port (RFC 9110, section 7.2; RFC 3986, section 3.2). */
const HOST = /^(?:\[([\da-f:.]+)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::\d*)?$/i;

/** Why a request cannot be understood, whatever its route. */
export function findHttpError(request: FastifyRequest): ApiError | undefined {
  return findHostError(request) ?? findTransferCodingError(request);
}

/** HTTP/1.1 requires exactly one Host, and any Host has to be valid (RFC 9112, section 3.2). */
function findHostError({ raw: { httpVersion, rawHeaders }, headers }: FastifyRequest): ApiError | undefined {
  const count = countHosts(rawHeaders);
  if (count > 1 || (count === 0 && httpVersion === '1.1')) {
    return new ApiError('invalid_request', {
      message: 'An HTTP/1.1 request must have exactly one Host header.',
    });
  }
  const [match, ipv6] = HOST.exec(headers.host ?? '') ?? [];
  if (match !== undefined && (ipv6 === undefined || isIPv6(ipv6))) return undefined;
  return new ApiError('invalid_request', { message: 'The Host header is not a host name and a port.' });
}

/** `headers` keeps only the first of several, and `headersDistinct` would parse all headers again. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/** Node.js removes chunks, and leaves any other transfer coding in the body (RFC 9112, section 6.1). */
function findTransferCodingError({ headers }: FastifyRequest): ApiError | undefined {
  const codings = headers['transfer-encoding'];
  if (codings === undefined || codings.toLowerCase() === 'chunked') return undefined;
  return new ApiError('not_implemented', {
    message: 'The only transfer coding that is supported is chunked.',
  });
}

/**
 * A body must be JSON. Media types are compared without parameters, whatever their case (RFC 9110, section 8.3.1). An operation
 * that takes nothing from a body needs none, as its document says.
 */
export function findMediaTypeError({ method, headers, admission }: FastifyRequest): ApiError | undefined {
  if (!METHODS_WITH_BODY.has(method)) return undefined;
  if (admission.target.mayLackBody && hasNoBody(headers)) return undefined;
  const mediaType = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType === 'application/json' && headers['content-encoding'] === undefined) return undefined;
  return new ApiError('unsupported_media_type');
}

/** RFC 9112, section 6.3 */
function hasNoBody(headers: FastifyRequest['headers']): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers;
  return Number(length) === 0 && coding === undefined;
}

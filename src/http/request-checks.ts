import type { FastifyRequest } from 'fastify';
import { ApiError } from '../errors.js';
import { hasBody } from './operations.js';

/** HTTP/1.1 requires exactly one Host (RFC 9112, section 3.2). */
export function findHostError({ raw: { httpVersion, rawHeaders } }: FastifyRequest): ApiError | undefined {
  if (httpVersion !== '1.1' || countHosts(rawHeaders) === 1) return undefined;
  return new ApiError('invalid_request', {
    message: 'An HTTP/1.1 request must have exactly one Host header.',
  });
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

/** A body must be JSON. Media types are compared without parameters, whatever their case (RFC 9110, section 8.3.1). */
export function findMediaTypeError({ method, headers }: FastifyRequest): ApiError | undefined {
  if (!hasBody(method)) return undefined;
  const mediaType = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType === 'application/json' && headers['content-encoding'] === undefined) return undefined;
  return new ApiError('unsupported_media_type');
}

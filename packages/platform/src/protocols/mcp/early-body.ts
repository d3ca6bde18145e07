import type { FastifyRequest } from 'fastify';
import { BODY_LIMIT_BYTES } from '../../contract/bounds.js';
import { ApiError } from '../../errors/api-error.js';

/*
 * The arguments of a tool are in the body, which Fastify reads once a request is admitted. For a query that begins before that,
 * the body is read here instead.
 */

/** Whether the head says that there is a body, and that it is not too large. */
export function canReadEarly({ headers }: FastifyRequest): boolean {
  const length = Number(headers['content-length']);
  return length > 0 && length <= BODY_LIMIT_BYTES;
}

/** Reads a body that canReadEarly. Rejects if its client leaves. */
export function readEarly({ raw }: FastifyRequest): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    raw.on('data', (chunk: Buffer) => void chunks.push(chunk));
    raw.on('end', () => resolve(Buffer.concat(chunks)));
    // Its client has left, which is no failure of the service.
    raw.on('error', (cause) => reject(new ApiError('invalid_request', { cause })));
  });
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IdempotencyHeader } from '../operations/builder.js';

/**
 * The Idempotency-Key of a request with what its calls need of it; undefined where it is not one value. The response says
 * `Idempotency-Replayed` while every call so far was a replay.
 *
 * @param bodyHash SHA-256 of the body
 */
export function readIdempotencyHeader(
  { headers }: FastifyRequest,
  bodyHash: Uint8Array,
  reply: FastifyReply,
): IdempotencyHeader | undefined {
  const value = headers['idempotency-key'];
  return typeof value === 'string' ? createIdempotencyHeader(value, bodyHash, reply) : undefined;
}

/** @param bodyHash SHA-256 of what a repetition has to repeat */
export function createIdempotencyHeader(
  value: string,
  bodyHash: Uint8Array,
  reply: FastifyReply,
): IdempotencyHeader {
  let isOnlyReplays = true;
  return {
    value,
    bodyHash,
    setReplayed(isReplay) {
      isOnlyReplays &&= isReplay;
      if (isOnlyReplays) reply.header('idempotency-replayed', 'true');
      else reply.removeHeader('idempotency-replayed');
    },
  };
}

import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Protocol } from '../contract/protocol.js';
import type { IdempotencyHeader } from '../operations/builder.js';

/**
 * The Idempotency-Key of a request, with what its calls need; undefined without the header. The response
 * says `Idempotency-Replayed` while every call so far was a replay.
 *
 * @param bodyHash see hashRepeated
 */
export function readIdempotencyHeader(
  { headers }: FastifyRequest,
  bodyHash: Uint8Array,
  reply: FastifyReply,
): IdempotencyHeader | undefined {
  const value = headers['idempotency-key'];
  return typeof value === 'string' ? createIdempotencyHeader(value, bodyHash, reply) : undefined;
}

/**
 * SHA-256 of what a repetition has to repeat. The same request over another protocol is no repetition, so the protocol's
 * name is hashed first, except for REST. No JSON begins with such a name.
 */
export function hashRepeated(protocol: Protocol, text: string | Uint8Array): Uint8Array {
  const hash = createHash('sha256').update(protocol === 'rest' ? '' : protocol);
  return hash.update(text).digest();
}

/** @param bodyHash see hashRepeated */
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

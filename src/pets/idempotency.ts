import { ApiError } from '../errors.js';
import type { Context } from '../trpc.js';

/** How long a create is remembered under its Idempotency-Key, in milliseconds. */
export const REMEMBERED_MS = 24 * 60 * 60 * 1000;

/** 1 to 255 visible ASCII characters. */
const FORM = /^[!-~]{1,255}$/;

/** Names one create of one API key, and the bytes that it was asked with. */
export interface IdempotencyKey {
  readonly apiKeyId: string;
  readonly key: string;
  /** Its place in a tRPC batch, whose calls share the header and the body; 0 otherwise */
  readonly call: number;
  /** SHA-256 of the body */
  readonly bodyHash: Uint8Array;
}

/**
 * The Idempotency-Key of a call, if it has one.
 *
 * @throws ApiError invalid_request when the header is malformed
 */
export function readIdempotencyKey(
  { apiKey, idempotency }: Pick<Context, 'apiKey' | 'idempotency'>,
  call: number,
): IdempotencyKey | undefined {
  if (idempotency === undefined) return undefined;
  if (!FORM.test(idempotency.header)) {
    throw new ApiError('invalid_request', 'Idempotency-Key must have 1 to 255 visible ASCII characters.');
  }
  return { apiKeyId: apiKey.id, key: idempotency.header, call, bodyHash: idempotency.bodyHash };
}

import type { FastifyReply } from 'fastify';
import { ApiError } from '../errors/api-error.js';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Decodes a JSON body, which is UTF-8 (RFC 8259).
 *
 * @throws ApiError invalid_request when the bytes are not UTF-8
 */
export function decodeBody(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new ApiError('invalid_request', { message: 'The body is not valid UTF-8.' });
  }
}

/** @throws ApiError invalid_request when the text is not JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError('invalid_request', { message: 'The body is not valid JSON.' });
  }
}

/**
 * Sends text that is already JSON. With a serializer, Fastify adds no charset, which application/json does not define.
 * A string is sent in one write with the head of the response; bytes would need a second write.
 */
export function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('application/json').serializer(identity).send(text);
}

function identity(text: string): string {
  return text;
}

import type { FastifyReply } from 'fastify';

/**
 * Sends text that is already JSON. With a serializer, Fastify adds no charset, which application/json does not define.
 * A string is sent in one write with the head of the response; bytes would need a second write.
 */
export function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('application/json').serializer(String).send(text);
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Call } from '../trpc.js';

/** What both faces tell a procedure of the request that it is called by. */
export function describeCall(request: FastifyRequest, reply: FastifyReply): Call {
  const { apiKey, bodyHash, headers } = request;
  const header = headers['idempotency-key'];
  if (apiKey === null) throw new TypeError('A face was entered without a key');
  return {
    apiKey,
    idempotency: typeof header === 'string' && bodyHash !== null ? { header, bodyHash } : undefined,
    setHeader: (name, value) => void reply.header(name, value),
  };
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Call } from '../trpc.js';

const REPLAYED = 'idempotency-replayed';

/** What both faces tell a procedure of the request that it is called by. */
export function describeCall(request: FastifyRequest, reply: FastifyReply): Call {
  const { apiKey, bodyHash, headers } = request;
  const header = headers['idempotency-key'];
  if (apiKey === undefined) throw new TypeError('A face was entered without a key');
  let isAllReplayed = true;
  return {
    apiKey,
    idempotency: typeof header === 'string' && bodyHash !== undefined ? { header, bodyHash } : undefined,
    noteCreate(isReplay) {
      isAllReplayed &&= isReplay;
      if (isAllReplayed) reply.header(REPLAYED, 'true');
      else reply.removeHeader(REPLAYED);
    },
  };
}

import type { FastifyInstance, FastifyReply } from 'fastify';
import { MCP_PREFIX, REST_PREFIX, TRPC_PREFIX } from '../contract/protocol.js';
import { ApiError } from '../errors/api-error.js';
import { reportError, sendJson } from './responses.js';

/** For callers who left out the prefix */
const NOTHING_HERE = `There is nothing at this address: REST is under ${REST_PREFIX}, tRPC under ${TRPC_PREFIX}, and the tools are at ${MCP_PREFIX}.`;

/** Errors that a handler or a hook throws. Those of tRPC calls and of tools are part of a response: see rpc.ts, call-tool.ts. */
export function answerErrorsWith(
  app: FastifyInstance,
  send: (error: ApiError, reply: FastifyReply) => FastifyReply,
): void {
  app.setErrorHandler((error, request, reply) => {
    // Fastify would close the connection behind a body that is too large. The rest of it is dropped instead, as after a
    // 401 or 415, so that clients which read only when they have sent everything get their answer.
    if (reply.hasHeader('connection'))
      reply.header('connection', reply.raw.shouldKeepAlive ? 'keep-alive' : 'close');
    return send(reportError(error, request, reply), reply);
  });
  const paths = new Set<string>();
  app.addHook('onRoute', ({ method, url }) => void ([method].flat().includes('GET') && paths.add(url)));
  app.setNotFoundHandler(({ url }) => {
    const [path = ''] = url.split('?', 1);
    if (!paths.has(path)) throw new ApiError('not_found', { message: NOTHING_HERE });
    // Within the protocols, routes of their own do this: see rest.ts and rpc.ts.
    throw new ApiError('method_not_allowed', { headers: { allow: 'GET, HEAD' } });
  });
}

export function sendError({ status, body }: ApiError, reply: FastifyReply): FastifyReply {
  return sendJson(reply.code(status), JSON.stringify(body));
}

/** An assistant shows its model the body, and no header. */
export function sendMcpError({ status, body, headers }: ApiError, reply: FastifyReply): FastifyReply {
  const retryAfter = headers['retry-after'];
  const wait = retryAfter === undefined ? {} : { retryAfterSeconds: Number(retryAfter) };
  return sendJson(reply.code(status), JSON.stringify({ ...body, ...wait }));
}

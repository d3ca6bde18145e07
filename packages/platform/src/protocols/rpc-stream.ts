import type { AnyTRPCRouter } from '@trpc/server';
import { resolveResponse } from '@trpc/server/http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ApiError } from '../errors/api-error.js';
import { type RequestContext, toErrorShape } from '../operations/builder.js';
import { reportError, sendJson } from './responses.js';

/**
 * Lets tRPC itself respond: by rejecting a malformed call, or with a stream, in which the result of each call in a batch is
 * sent as soon as it is known. Node.js sends a stream in chunks, or until the connection ends if the caller speaks HTTP/1.0.
 */
export async function respondWithTrpc(
  router: AnyTRPCRouter,
  context: RequestContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  addVary(reply);
  const { path } = request.params as { path: string };
  const response = await resolveResponse({
    router,
    req: toWebRequest(request),
    // Fastify has decoded the path, and tRPC decodes it again.
    path: encodeURIComponent(path),
    error: null,
    createContext: async () => context,
    onError({ error, path }) {
      context.idempotency?.setReplayed(false);
      reportError(error, request, reply, path);
    },
  });
  // Headers that depend on all calls of the batch cannot be sent before the calls have finished: Idempotency-Replayed and
  // those of a rehearsed error.
  const isHeadOpen = context.idempotency !== undefined || context.rehearsal !== undefined;
  const isStream = response.headers.get('transfer-encoding') === 'chunked' && !isHeadOpen;
  const body = isStream ? response.body : Buffer.from(await response.arrayBuffer());
  return reply.code(response.status).header('content-type', 'application/json').send(body);
}

/** Sends an error that was found before tRPC was called. For tRPC's clients, only a status below 300 begins a stream. */
export function sendRpcError(apiError: ApiError, reply: FastifyReply): FastifyReply {
  addVary(reply);
  return sendJson(reply.code(apiError.status), JSON.stringify({ error: toErrorShape(apiError) }));
}

/**
 * The members of a web Request that resolveResponse reads. The headers are those that say how to respond to a batch; the media
 * type has been checked. HEAD runs as GET, and Node.js omits the body, because tRPC itself would respond with an empty 204.
 */
function toWebRequest({ method, url, headers, body }: FastifyRequest): Request {
  const { accept = '', 'trpc-accept': trpcAccept } = headers;
  const accepted = trpcAccept === undefined ? { accept } : { 'trpc-accept': String(trpcAccept) };
  const webRequest: Pick<Request, 'method' | 'url' | 'headers' | 'signal' | 'text'> = {
    method: method === 'HEAD' ? 'GET' : method,
    url: `http://localhost${url}`,
    headers: new Headers({ 'content-type': 'application/json', ...accepted }),
    signal: new AbortController().signal,
    text: async () => String(body ?? ''),
  };
  return webRequest as Request;
}

/** tRPC's responses vary with these headers, besides those that CORS has listed. */
export function addVary(reply: FastifyReply): void {
  const listed = reply.getHeader('vary');
  reply.header('vary', listed === undefined ? 'trpc-accept, accept' : `${listed}, trpc-accept, accept`);
}

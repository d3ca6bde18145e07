import type { AnyTRPCRouter } from '@trpc/server';
import { type HTTPBaseHandlerOptions, resolveResponse } from '@trpc/server/http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ApiError, ErrorShape } from '../errors/api-error.js';
import { type RequestContext, toErrorShape } from '../operations/builder.js';
import { sendJson } from './json.js';
import { readTarget } from './rpc-target.js';

export interface StreamOptions {
  readonly router: AnyTRPCRouter;
  readonly context: RequestContext;
  readonly onError: NonNullable<HTTPBaseHandlerOptions<AnyTRPCRouter, Request>['onError']>;
}

/** Batches are much smaller. Names can be empty, so a URL has room for thousands, and each would have an error. */
const MAX_STREAMED_ERRORS = 100;

/** Lets tRPC itself respond: with a stream, or by rejecting a malformed call. */
export async function respondWithTrpc(
  { router, context, onError }: StreamOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { path } = request.params as { path: string };
  const response = await resolveResponse({
    router,
    req: toWebRequest(request),
    // Fastify has decoded the path, and tRPC decodes it again.
    path: encodeURIComponent(path),
    error: null,
    createContext: async () => context,
    onError,
  });
  if (!isStream(response) && readTarget(request).isStream) {
    // tRPC rejected the batch as a whole.
    const { error } = (await response.json()) as { error: ErrorShape };
    return sendStreamedError(reply, readTarget(request).names.length, error);
  }
  // Idempotency-Replayed depends on every create of the batch, so the head cannot be sent before they have finished.
  const canStream = isStream(response) && context.idempotency === undefined;
  const body = canStream ? response.body : Buffer.from(await response.arrayBuffer());
  if (canStream) reply.header('transfer-encoding', 'chunked');
  return reply.code(response.status).header('content-type', 'application/json').send(body);
}

/** Sends an error that was found before tRPC was asked, in the format that the client asked for. */
export function sendRpcError(apiError: ApiError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = toErrorShape(apiError);
  addVary(reply);
  const calls = request.is404 || !readTarget(request).isStream ? 0 : readTarget(request).names.length;
  if (calls > 0 && calls <= MAX_STREAMED_ERRORS) return sendStreamedError(reply, calls, error);
  return sendJson(reply.code(apiError.status), JSON.stringify({ error }));
}

/**
 * Sends an error as the result of each call of a streamed batch: the first line of tRPC's format (jsonlStreamProducer),
 * without further ones, because nothing in it is pending.
 *
 * The status is 200, as tRPC's own is when all calls of a stream fail. To @trpc/client 11.0 to 11.12 every response is a
 * stream, whatever its status; to later versions only one with a status below 300.
 */
function sendStreamedError(reply: FastifyReply, calls: number, error: ErrorShape): FastifyReply {
  const results = Array.from({ length: calls }, () => [[{ error }]]);
  return sendJson(reply.code(200), `${JSON.stringify({ ...results })}\n`);
}

/** With application/jsonl, the result of each call in a batch is sent as soon as it is known. */
function isStream(response: Response): boolean {
  return response.headers.get('transfer-encoding') === 'chunked';
}

/**
 * The members of a web Request that resolveResponse reads. HEAD runs as GET, and Node.js omits the body; tRPC itself
 * would answer HEAD with an empty 204.
 */
function toWebRequest(request: FastifyRequest): Request {
  const { method, body } = request;
  const webRequest: Pick<Request, 'method' | 'url' | 'headers' | 'signal' | 'json'> = {
    method: method === 'HEAD' ? 'GET' : method,
    url: `http://localhost${request.url}`,
    headers: pickHeaders(request),
    signal: new AbortController().signal,
    json: async () => (body ? JSON.parse(String(body)) : undefined),
  };
  return webRequest as Request;
}

/** The headers that tRPC uses: how to respond to a batch, and the media type, which admission has checked. */
function pickHeaders({ method, headers }: FastifyRequest): Headers {
  const picked = new Headers();
  if (method === 'POST') picked.set('content-type', 'application/json');
  for (const name of ['accept', 'trpc-accept']) {
    const value = headers[name];
    if (typeof value === 'string') picked.set(name, value);
  }
  return picked;
}

/** tRPC's responses vary with these headers, in addition to those that CORS has listed. */
export function addVary(reply: FastifyReply): void {
  const listed = reply.getHeader('vary');
  reply.header('vary', listed === undefined ? 'trpc-accept, accept' : `${listed}, trpc-accept, accept`);
}

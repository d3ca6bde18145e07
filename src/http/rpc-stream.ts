import type { AnyTRPCRouter } from '@trpc/server';
import { type HTTPBaseHandlerOptions, resolveResponse } from '@trpc/server/http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestContext } from '../trpc.js';
import { keepFractions } from './json.js';

export interface StreamOptions {
  readonly router: AnyTRPCRouter;
  readonly context: RequestContext;
  readonly onError: NonNullable<HTTPBaseHandlerOptions<AnyTRPCRouter, Request>['onError']>;
}

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
  // Idempotency-Replayed depends on every create of the batch, so the head cannot be sent before they have finished.
  const canStream = isStream(response) && context.idempotency === undefined;
  const body = canStream ? response.body : Buffer.from(await response.arrayBuffer());
  if (canStream) reply.header('transfer-encoding', 'chunked');
  return reply.code(response.status).header('content-type', 'application/json').send(body);
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
    url: keepInputFractions(new URL(`http://localhost${request.url}`)).href,
    headers: pickHeaders(request),
    signal: new AbortController().signal,
    json: async () => (body ? JSON.parse(keepFractions(String(body))) : undefined),
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

/** A query's input is JSON in the URL. Malformed JSON is left alone, for tRPC to reject. */
function keepInputFractions(url: URL): URL {
  const input = url.searchParams.get('input');
  if (input === null) return url;
  try {
    const exact = keepFractions(input);
    if (exact !== input) url.searchParams.set('input', exact);
  } catch {}
  return url;
}

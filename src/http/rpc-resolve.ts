import { resolveResponse } from '@trpc/server/http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AppRouter } from '../router.js';
import type { Context } from '../trpc.js';
import { keepFractions } from './json.js';
import { readPath } from './rpc-call.js';
import { noteError, varyBy } from './rpc-plain.js';

/** The answer that tRPC itself gives, which may be a stream, or the refusal of a call that is none. */
export async function answerByTrpc(
  router: AppRouter,
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const response = await resolveResponse({
    router,
    req: toWebRequest(request),
    // tRPC decodes the path once more
    path: encodeURIComponent(readPath(request)),
    error: null,
    createContext: async () => context,
    onError: ({ error, path }) => noteError(error, path, request, reply),
  });
  // Whether its creates were repeated is known when they have ended: such an answer cannot be streamed.
  const canStream = isStream(response) && request.headers['idempotency-key'] === undefined;
  const body = canStream ? response.body : Buffer.from(await response.arrayBuffer());
  if (canStream) reply.header('transfer-encoding', 'chunked');
  return reply
    .code(response.status)
    .headers({ vary: varyBy(reply), 'content-type': 'application/json' })
    .send(body);
}

/** application/jsonl answers each call of a batch as it ends. */
function isStream(response: Response): boolean {
  return response.headers.get('transfer-encoding') === 'chunked';
}

/**
 * What resolveResponse reads of a web Request. HEAD runs as GET (tRPC itself would answer an empty 204), and Node.js
 * leaves the body out.
 */
function toWebRequest(request: FastifyRequest): Request {
  const { method, body } = request;
  const webRequest: Pick<Request, 'method' | 'url' | 'headers' | 'signal' | 'json'> = {
    method: method === 'HEAD' ? 'GET' : method,
    url: keepInputFractions(readUrl(request)).href,
    headers: pickHeaders(request),
    signal: new AbortController().signal,
    json: async () => (body ? JSON.parse(keepFractions(String(body))) : undefined),
  };
  return webRequest as Request;
}

/** Only what tRPC decides by: the media type of a body, which is checked already, and how to answer a batch. */
function pickHeaders({ method, headers }: FastifyRequest): Headers {
  const picked = new Headers();
  if (method === 'POST') picked.set('content-type', 'application/json');
  for (const name of ['accept', 'trpc-accept']) {
    const value = headers[name];
    if (typeof value === 'string') picked.set(name, value);
  }
  return picked;
}

/** The input of a query is JSON in the address. What is not JSON stays as it is, for tRPC to refuse. */
function keepInputFractions(url: URL): URL {
  const input = url.searchParams.get('input');
  if (input === null) return url;
  try {
    const exact = keepFractions(input);
    if (exact !== input) url.searchParams.set('input', exact);
  } catch {}
  return url;
}

function readUrl(request: FastifyRequest): URL {
  return new URL(`http://localhost${request.url}`);
}

import { resolveResponse } from '@trpc/server/http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { MAX_BATCH_SIZE } from '../bounds.js';
import type { Deprecation } from '../deprecation.js';
import { ApiError, toApiError } from '../errors.js';
import type { AppRouter } from '../router.js';
import type { OperationMeta, Service } from '../trpc.js';
import { describeCall } from './call.js';
import { keepFractions } from './json.js';
import { methodNotAllowed } from './rest.js';

export interface RpcOptions {
  readonly router: AppRouter;
  readonly service: Service;
}

type Procedures = Readonly<
  Record<string, { readonly _def: { readonly type: string; readonly meta?: unknown } }>
>;

/** Serves the router to tRPC clients: Fastify finds the route and reads the body, tRPC does the rest. */
export function registerRpc(app: FastifyInstance, { router, service }: RpcOptions): void {
  app.route({
    method: [...app.supportedMethods],
    url: '/:path',
    config: {
      operation: (request) => readNames(request).join(','),
      cost: (request) => countCalls(readNames(request)),
      deprecation: (request) => findDeprecation(router._def.procedures, readNames(request)),
      routeFault: (request) => findRouteFault(router._def.procedures, request, readNames(request)),
    },
    async handler(request, reply) {
      checkBatchSize(readNames(request));
      const response = await resolveResponse({
        router,
        req: toWebRequest(request),
        // tRPC decodes the path once more
        path: encodeURIComponent(readPath(request)),
        error: null,
        createContext: async () => ({ ...service, ...describeCall(request, reply) }),
        onError({ error, path }) {
          const apiError = toApiError(error);
          if (apiError.status >= 500) request.log.error({ err: apiError.cause, path }, apiError.message);
          reply.headers(apiError.headers);
        },
      });
      // Whether its creates were repeated is known when they have ended: such an answer cannot be streamed.
      const canStream = isStream(response) && request.headers['idempotency-key'] === undefined;
      const body = canStream ? response.body : Buffer.from(await response.arrayBuffer());
      copyHead(response, reply, canStream);
      return reply.send(body);
    },
  });
}

/** tRPC names what its answer varies by; what CORS has named stays. Its early errors lack the media type. */
function copyHead(response: Response, reply: FastifyReply, isStreamed: boolean): void {
  const { vary, 'transfer-encoding': transfer, ...rest } = Object.fromEntries(response.headers);
  const headers = isStreamed && transfer !== undefined ? { ...rest, 'transfer-encoding': transfer } : rest;
  const varies = [reply.getHeader('vary'), vary].filter((names) => names !== undefined);
  reply
    .code(response.status)
    .headers({ ...headers, vary: varies.join(', '), 'content-type': 'application/json' });
}

/** application/jsonl answers each call of a batch as it ends. */
function isStream(response: Response): boolean {
  return response.headers.get('transfer-encoding') === 'chunked';
}

function readPath(request: FastifyRequest): string {
  return (request.params as { path: string }).path;
}

/** The procedures that a request calls, read as tRPC reads them, so that what is counted is what will run. */
function readNames(request: FastifyRequest): string[] {
  const path = readPath(request);
  return readUrl(request).searchParams.get('batch') === '1' ? path.split(',') : [path];
}

function checkBatchSize(names: readonly string[]): void {
  if (names.length > MAX_BATCH_SIZE) {
    throw new ApiError(
      'invalid_request',
      `A batch holds at most ${MAX_BATCH_SIZE} calls; this one has ${names.length}.`,
    );
  }
}

/** A batch costs its calls; one that is too large runs none and counts as one request. */
function countCalls(names: readonly string[]): number {
  return names.length > MAX_BATCH_SIZE ? 1 : names.length;
}

function findDeprecation(procedures: Procedures, names: readonly string[]): Deprecation | undefined {
  const known = names.filter((name) => Object.hasOwn(procedures, name));
  const metas = known.map((name) => procedures[name]?._def.meta as OperationMeta | undefined);
  return metas.find((meta) => meta?.deprecation !== undefined)?.deprecation;
}

/** 404 when no procedure of the call exists, 405 when each that does wants the other method. */
function findRouteFault(procedures: Procedures, { method }: FastifyRequest, names: readonly string[]) {
  const methods = names
    .filter((name) => Object.hasOwn(procedures, name))
    .flatMap((name) => (procedures[name]?._def.type === 'mutation' ? ['POST'] : ['GET', 'HEAD']));
  if (methods.length === 0) return new ApiError('not_found', 'There is no such procedure.');
  return methods.includes(method) ? undefined : methodNotAllowed([...new Set(methods)]);
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
    json: async () => parseInput(body),
  };
  return webRequest as Request;
}

/** tRPC's clients send no body when there is no input. What is not JSON throws a SyntaxError, which tRPC reports. */
function parseInput(body: unknown): unknown {
  return typeof body === 'string' && body !== '' ? JSON.parse(keepFractions(body)) : undefined;
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

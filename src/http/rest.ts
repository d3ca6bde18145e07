import type { AnyTRPCProcedure } from '@trpc/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createOpenApiNodeHttpHandler } from 'trpc-to-openapi';
import { z } from 'zod';
import { ApiError, toApiError } from '../errors.js';
import { REST_PREFIX } from '../protocol.js';
import type { AppRouter } from '../router.js';
import type { Context, RestCall, Service } from '../trpc.js';
import { sendJson } from './json.js';
import { listOperations, type Operation } from './operations.js';
import { describeCall } from './request-context.js';

const DECIMAL_INTEGER = /^-?\d+$/;

export interface RestOptions {
  readonly router: AppRouter;
  readonly service: Service;
  /** The address that clients know the service by, without a trailing slash. */
  readonly publicUrl: () => string;
}

/**
 * Serves every operation of the router as REST. Fastify finds the route and reads the body; trpc-to-openapi's handler
 * runs the operation and writes its output.
 */
export function registerRest(app: FastifyInstance, { router, service, publicUrl }: RestOptions): void {
  const operations = listOperations(router);
  for (const operation of operations) {
    const handle = createHandler(operation, router);
    const url = operation.path.replaceAll(/[{}]/g, '');
    app.route({
      method: operation.method,
      url: toFastifyPath(operation.path),
      config: { operation: operation.name, deprecation: () => operation.deprecation },
      async handler(request, reply) {
        const rest = new RestAnswer(readInput(operation, request), request, publicUrl);
        const exchange = new Exchange(operation, url, { ...service, ...describeCall(request, reply), rest });
        const answer = new Answer();
        await handle(exchange, answer);
        if (exchange.fault !== undefined) throw toRestError(operation, exchange.fault);
        return send(reply, rest, answer);
      },
    });
  }
  registerOtherMethods(app, operations);
}

/**
 * trpc-to-openapi's handler for one operation. Its input comes through the context, and is declared as void once the
 * handler has looked at the router: else it would read query and body again and walk through the input schemas on every
 * request, making new ones on its way; and tRPC's own caller is a chain of proxies made for each.
 */
function createHandler({ name }: Operation, router: AppRouter) {
  const procedure = (router._def.procedures as Record<string, AnyTRPCProcedure>)[name] as AnyTRPCProcedure;
  const { type, inputs } = procedure._def;
  const standIn = { _def: { ...procedure._def, inputs: inputs as unknown[] } };
  const createCaller = (ctx: Context) => ({
    [name]: () =>
      procedure({
        ctx,
        path: name,
        type,
        getRawInput: async () => ctx.rest?.input,
        signal: neverAborted,
        batchIndex: 0,
      }),
  });
  const handle = createOpenApiNodeHttpHandler({
    router: {
      _def: { ...router._def, procedures: { [name]: standIn } },
      createCaller,
    } as unknown as AppRouter,
    createContext: ({ req }) => (req as unknown as Exchange).context,
    onError: ({ error, req }) => {
      (req as unknown as Exchange).fault = error;
    },
  });
  standIn._def.inputs = [z.void()];
  return handle as unknown as (request: Exchange, response: Answer) => Promise<void>;
}

/** A path that is known answers every other method with 405 and what is allowed (RFC 9110, section 15.5.6). */
function registerOtherMethods(app: FastifyInstance, operations: readonly Operation[]): void {
  for (const path of new Set(operations.map((operation) => operation.path))) {
    const methods = operations
      .filter((operation) => operation.path === path)
      .map(({ method }) => method as string);
    const allowed = methods.includes('GET') ? [...methods, 'HEAD'] : methods;
    app.route({
      method: app.supportedMethods.filter((method) => !allowed.includes(method)),
      url: toFastifyPath(path),
      config: { routeError: () => methodNotAllowed(allowed) },
      handler: () => Promise.reject(methodNotAllowed(allowed)),
    });
  }
}

export function methodNotAllowed(allowed: readonly string[]): ApiError {
  const allow = allowed.join(', ');
  return new ApiError('method_not_allowed', `This path answers ${allow} only.`, { headers: { allow } });
}

/** OpenAPI writes {petId} where Fastify writes :petId; the pattern keeps an empty segment from being a value. */
function toFastifyPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1(.+)');
}

/** Reads what the operation knows from the body, or else from query and path, turned to numbers where it wants them. */
function readInput({ method, fields }: Operation, request: FastifyRequest): unknown {
  if (method === 'POST') return request.body;
  const input: Record<string, unknown> = {};
  const query = request.query as URLSearchParams;
  const params = request.params as Record<string, string | undefined>;
  for (const { name, isNumber } of fields) {
    const [value, further] = params[name] === undefined ? query.getAll(name) : [params[name]];
    if (value === undefined) continue;
    if (further !== undefined) throw new ApiError('invalid_request', `${name} must be given at most once.`);
    input[name] = isNumber && DECIMAL_INTEGER.test(value) ? Number(value) : value;
  }
  return input;
}

/** A path value that cannot name anything is an address that does not exist, not a bad input. */
function toRestError({ path }: Operation, fault: Error): ApiError {
  const { cause } = fault;
  const names = cause instanceof z.ZodError ? cause.issues.map((issue) => String(issue.path[0])) : [];
  if (names.some((name) => path.includes(`{${name}}`))) {
    return new ApiError('not_found', 'There is nothing under this address.', { cause: fault });
  }
  return toApiError(fault);
}

function send(reply: FastifyReply, rest: RestAnswer, { body }: Answer): FastifyReply {
  return sendJson(reply.code(rest.status).headers(rest.headers), body);
}

/** What one call says beside its output. */
class RestAnswer implements RestCall {
  readonly input: unknown;
  readonly #request: FastifyRequest;
  readonly #publicUrl: () => string;
  readonly headers: Record<string, string> = {};
  status = 200;

  constructor(input: unknown, request: FastifyRequest, publicUrl: () => string) {
    this.input = input;
    this.#request = request;
    this.#publicUrl = publicUrl;
  }

  created(path: string): void {
    this.status = 201;
    this.headers.location = REST_PREFIX + path;
  }

  /** RFC 8288. The address is built on the public one, never on what the client says of the host. */
  nextPage(cursor: number): void {
    const [path = ''] = this.#request.url.split('?', 1);
    const parameters = new URLSearchParams(this.#request.query as URLSearchParams);
    parameters.set('cursor', String(cursor));
    this.headers.link = `<${this.#publicUrl()}${path}?${parameters}>; rel="next"`;
  }
}

/** Shared by all exchanges: the handler looks at the media type, which Fastify has checked. */
const headers = new Headers({ 'content-type': 'application/json' });
const neverAborted = new AbortController().signal;

/**
 * The request as the handler sees it. It reads the address to find the procedure, and nothing else that counts: the
 * input comes through the context. Being an `instanceof Request` spares the handler from building one, which costs
 * more than all the rest of its work.
 */
class Exchange {
  readonly method: string;
  readonly url: string;
  readonly headers = headers;
  readonly signal = neverAborted;
  readonly query = {};
  readonly body = undefined;
  readonly context: Context;
  fault: Error | undefined;

  constructor({ method }: Operation, url: string, context: Context) {
    this.method = method;
    this.url = url;
    this.context = context;
  }
}
Object.setPrototypeOf(Exchange.prototype, Request.prototype);

/** The response as the handler writes it. */
class Answer {
  statusCode = 200;
  body = '';
  setHeader(): void {}
  end(body: string): void {
    this.body = body;
  }
}

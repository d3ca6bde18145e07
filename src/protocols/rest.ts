import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { REST_PREFIX } from '../contract/protocol.js';
import { ApiError } from '../errors/api-error.js';
import { METHODS_WITH_BODY } from '../operations/builder.js';
import { toApiError } from '../operations/error-mapping.js';
import { listOperations, type Operation, type OperationParameter } from '../operations/list-operations.js';
import { sendJson } from './body.js';
import { createOpenApiHandler } from './openapi-adapter.js';
import { createContextFactory, type ServeOptions } from './request-context.js';

/** The form in which a path or a query carries each type other than strings. */
const PATTERNS = {
  integer: /^-?\d+$/,
  number: /^-?\d+(?:\.\d+)?$/,
  boolean: /^(?:true|false)$/,
} as const;

export interface RestOptions extends ServeOptions {
  /** The address that clients use, without a trailing slash. */
  readonly publicUrl: () => string;
}

/** Serves every operation of the router as REST. */
export function registerRest(app: FastifyInstance, { router, stores, now, publicUrl }: RestOptions): void {
  const operations = listOperations(router);
  const createContext = createContextFactory({ router, stores, now });
  for (const operation of operations) {
    const run = createOpenApiHandler(router, operation, createLocation(operation));
    app.route({
      method: operation.method,
      url: toFastifyPath(operation.path),
      config: {
        operation: operation.name,
        scope: () => operation.scope,
        deprecation: () => operation.deprecation,
      },
      async handler(request, reply) {
        const context = createContext(request, reply, {
          linkNextPage: (cursor) => linkNextPage(cursor, publicUrl(), request, reply),
        });
        try {
          const { statusCode, headers, body } = await run(context, readInput(operation, request));
          reply.code(statusCode);
          if (headers !== undefined) reply.headers(headers);
          return body === undefined ? reply.send() : sendJson(reply, body);
        } catch (error) {
          throw toRestError(operation, error);
        }
      },
    });
  }
  registerOtherMethods(app, operations);
}

function createLocation({ success }: Operation) {
  if (success === undefined) return undefined;
  return (output: never) => ({ location: REST_PREFIX + success.location(output) });
}

/** A known path responds to every other method with a 405 and Allow (RFC 9110, section 15.5.6). */
function registerOtherMethods(app: FastifyInstance, operations: readonly Operation[]): void {
  for (const path of new Set(operations.map((operation) => operation.path))) {
    const methods: string[] = operations
      .filter((operation) => operation.path === path)
      .map(({ method }) => method);
    const allowed = methods.includes('GET') ? [...methods, 'HEAD'] : methods;
    const createError = () => new ApiError('method_not_allowed', { headers: { allow: allowed.join(', ') } });
    app.route({
      method: app.supportedMethods.filter((method) => !allowed.includes(method)),
      url: toFastifyPath(path),
      config: { routeError: createError },
      handler: () => Promise.reject(createError()),
    });
  }
}

/**
 * OpenAPI writes {petId} where Fastify writes :petId. The pattern keeps an empty segment from being a value; anything
 * else is one, line breaks too.
 */
function toFastifyPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1([^]+)');
}

/** The body or the query, plus the path parameters, which a body member of the same name cannot override. */
function readInput({ method, parameters }: Operation, request: FastifyRequest): unknown {
  if (!METHODS_WITH_BODY.has(method)) return readParameters(parameters, request);
  const { body } = request;
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  return parameters.length > 0 && isObject ? { ...body, ...readParameters(parameters, request) } : body;
}

function readParameters(
  parameters: readonly OperationParameter[],
  request: FastifyRequest,
): Record<string, unknown> {
  const input: Record<string, unknown> = {};
  const query = request.query as URLSearchParams;
  const params = request.params as Record<string, string>;
  for (const parameter of parameters) {
    const { name } = parameter;
    const [value, further] = parameter.in === 'path' ? [params[name]] : query.getAll(name);
    if (value === undefined) continue;
    if (further !== undefined) {
      throw new ApiError('invalid_request', { message: `${name} must be given at most once.` });
    }
    input[name] = toValue(parameter, value);
  }
  return input;
}

/** Text that is not of the parameter's type is left as it is, for the input schema to reject. */
function toValue({ type }: OperationParameter, text: string): unknown {
  if (type === 'string' || !PATTERNS[type].test(text)) return text;
  return type === 'boolean' ? text === 'true' : Number(text);
}

/** An invalid path parameter means that the address does not exist, rather than that the input is invalid. */
function toRestError({ path }: Operation, error: unknown): ApiError {
  const { cause } = error as { cause?: unknown };
  const names = cause instanceof z.ZodError ? cause.issues.map((issue) => String(issue.path[0])) : [];
  const isPathInvalid = names.some((name) => path.includes(`{${name}}`));
  return isPathInvalid ? new ApiError('not_found', { cause: error }) : toApiError(error);
}

/** RFC 8288. The link starts with the public address, never with one from a Host or forwarded header. */
function linkNextPage(
  cursor: number,
  publicUrl: string,
  { url, query }: FastifyRequest,
  reply: FastifyReply,
): void {
  const [path = ''] = url.split('?', 1);
  const parameters = new URLSearchParams(query as URLSearchParams);
  parameters.set('cursor', String(cursor));
  const link = `<${publicUrl}${path}?${parameters}>; rel="next"`;
  const others = reply.getHeader('link');
  reply.header('link', others === undefined ? link : `${others}, ${link}`);
}

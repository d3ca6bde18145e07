import type { AnyTRPCRouter } from '@trpc/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Begin, toHandler } from '../admission/begin.js';
import { METHODS_WITH_BODY, REST_PREFIX } from '../contract/protocol.js';
import { ApiError } from '../errors/api-error.js';
import type { RequestTarget } from '../operations/builder.js';
import { isInputError, toApiError } from '../operations/error-mapping.js';
import type { Operation, OperationParameter } from '../operations/list-operations.js';
import type { CreateContext } from './context.js';
import { createOpenApiHandler } from './openapi-adapter.js';
import { sendJson } from './responses.js';

/** The form in which a path or a query carries each type other than strings. */
const PATTERNS = {
  integer: /^-?\d+$/,
  number: /^-?\d+(?:\.\d+)?$/,
  boolean: /^(?:true|false)$/,
} as const;

export interface RestOptions {
  readonly operations: readonly Operation[];
  readonly router: AnyTRPCRouter;
  /** The address that clients use, without a trailing slash. */
  readonly publicUrl: () => string;
  readonly createContext: CreateContext;
}

/** Serves every operation as REST. */
export function registerRest(app: FastifyInstance, options: RestOptions): void {
  const { operations, router, publicUrl, createContext } = options;
  for (const operation of operations) {
    const { name, method, path, scope, deprecation, output: schema, success } = operation;
    const { freeForKey, mayBegin, cost = 1 } = operation;
    const run = createOpenApiHandler(router, operation);
    const allowed = listAllowed(operations, path);
    const target: RequestTarget = {
      calls: [name],
      cost,
      scope,
      deprecation,
      freeForKey,
      mayLackBody: !operation.takesBody,
      listAllowed: () => allowed,
      mayBegin,
    };
    const status = success?.status ?? (schema === undefined ? 204 : 200);
    const begin: Begin = async (request, reply) => {
      let nextCursor: number | undefined;
      const context = createContext(request, reply, (cursor) => {
        nextCursor = cursor;
      });
      const { output, json } = await run(context, readInput(operation, request)).catch((error) => {
        throw toRestError(operation, error);
      });
      return () => {
        if (nextCursor !== undefined) linkNextPage(nextCursor, publicUrl(), request, reply);
        reply.code(status);
        if (success?.location !== undefined)
          reply.header('location', pathOf(publicUrl()) + REST_PREFIX + success.location(output as never));
        return json === undefined ? reply.send() : sendJson(reply, json);
      };
    };
    app.route({
      method,
      url: toFastifyPath(path),
      config: { readTarget: () => target, begin },
      handler: toHandler(begin),
    });
  }
  registerOtherMethods(app, operations);
}

/** A known path responds to every other method with a 405 and Allow (RFC 9110, section 15.5.6). */
function registerOtherMethods(app: FastifyInstance, operations: readonly Operation[]): void {
  for (const path of new Set(operations.map((operation) => operation.path))) {
    const allowed = listAllowed(operations, path);
    const error = new ApiError('method_not_allowed', { headers: { allow: allowed.join(', ') } });
    const target = { calls: [], cost: 1, error };
    app.route({
      method: app.supportedMethods.filter((method) => !allowed.includes(method)),
      url: toFastifyPath(path),
      config: { readTarget: () => target },
      handler: () => Promise.reject(error),
    });
  }
}

function listAllowed(operations: readonly Operation[], path: string): string[] {
  const methods: string[] = operations
    .filter((operation) => operation.path === path)
    .map(({ method }) => method);
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods;
}

/** OpenAPI has {petId} where Fastify has :petId. An empty segment is no value; anything else is, even line breaks. */
function toFastifyPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1([^]+)');
}

/** The body or the query, plus the path parameters, which a body member of the same name cannot override. */
function readInput({ method, parameters }: Operation, request: FastifyRequest): unknown {
  if (!METHODS_WITH_BODY.has(method)) return readParameters(parameters, request);
  // A request may lack a body from which nothing is taken.
  const { body = {} } = request;
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

/**
 * Text that is not of the parameter's type stays as it is, for the input schema to reject. The text `null` becomes null,
 * so that the error is the same as in JSON.
 */
function toValue({ type, hasNullText }: OperationParameter, text: string): unknown {
  if (hasNullText && text === 'null') return null;
  if (type === 'string' || !PATTERNS[type].test(text)) return text;
  return type === 'boolean' ? text === 'true' : Number(text);
}

/** An invalid path parameter means that the address does not exist, rather than that the input is invalid. */
function toRestError({ path }: Operation, error: unknown): ApiError {
  const names = isInputError(error) ? error.cause.issues.map((issue) => String(issue.path[0])) : [];
  const isPathInvalid = names.some((name) => path.includes(`{${name}}`));
  return isPathInvalid ? new ApiError('not_found', { cause: error }) : toApiError(error);
}

/** The prefix that a proxy puts before every path, so that a client can resolve a Location by the URL it called. */
function pathOf(url: string): string {
  return url.replace(/^[^/]+\/\/[^/]+/, '');
}

/** RFC 8288. The link starts with the public address, never with one from a Host or forwarded header. */
function linkNextPage(
  cursor: number,
  publicUrl: string,
  { url, query }: FastifyRequest,
  reply: FastifyReply,
): void {
  const [path = ''] = url.split('?', 1);
  // Changed in place, because nothing reads the parameters after this.
  const parameters = query as URLSearchParams;
  parameters.set('cursor', String(cursor));
  const link = `<${publicUrl}${path}?${parameters}>; rel="next"`;
  const others = reply.getHeader('link');
  reply.header('link', others === undefined ? link : `${others}, ${link}`);
}

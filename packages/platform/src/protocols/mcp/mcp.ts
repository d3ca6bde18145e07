import type { AnyTRPCRouter } from '@trpc/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { toHandler } from '../../admission/begin.js';
import type { Definition } from '../../definition/definition.js';
import { ApiError } from '../../errors/api-error.js';
import type { RequestTarget } from '../../operations/builder.js';
import type { Operation } from '../../operations/list-operations.js';
import { decodeBody, parseJson, readBodyAs } from '../body.js';
import type { CreateContext } from '../context.js';
import { sendJson } from '../responses.js';
import { reportFailure, type ToolExchange } from './call-tool.js';
import { canReadEarly, readEarly } from './early-body.js';
import { createEndpoint } from './endpoint.js';
import { CALL_METHOD, type Message, readHead, toMessage } from './message.js';
import { createTools } from './tools.js';

export interface McpOptions {
  readonly definition: Pick<Definition, 'identity' | 'root'>;
  readonly operations: readonly Operation[];
  readonly router: AnyTRPCRouter;
  readonly createContext: CreateContext;
}

/** The target of a request that calls no operation, or names it only in its body. */
const NO_CALL: RequestTarget = { calls: [], cost: 1, listAllowed: () => ['POST'] };
/** The target of a request whose headers say that it calls nothing. A body that disagrees is refused. */
const FREE: RequestTarget = { ...NO_CALL, freeForKey: 'windowed' };
const FREE_METHOD = /^(?:server\/discover$|tools\/list$|notifications\/)/;
const NOT_ALLOWED = new ApiError('method_not_allowed', { headers: { allow: 'POST' } });
const OTHER_METHOD: RequestTarget = { ...NO_CALL, error: NOT_ALLOWED };

/**
 * Serves the operations as tools of the Model Context Protocol (https://modelcontextprotocol.io/specification/2026-07-28):
 * each request is one message, and its response the answer as JSON.
 */
export function registerMcp(app: FastifyInstance, options: McpOptions): void {
  const { definition, operations, router, createContext } = options;
  const tools = createTools(operations, router);
  const targets = new Map<unknown, RequestTarget>(
    [...tools.values()].map(({ operation }) => [operation.name, toTarget(operation)]),
  );
  const findTarget = (name: unknown) => targets.get(name) ?? NO_CALL;
  const answerMessage = createEndpoint({ definition, tools, log: app.log });
  readBodyAs(app, readJson);
  const answer = async (request: FastifyRequest, reply: FastifyReply, body: unknown) => {
    if (request.method !== 'POST') throw NOT_ALLOWED;
    const message = toMessage(body);
    const rehearsed = findRehearsedError(request, message);
    if (rehearsed !== undefined) throw rehearsed;
    const exchange: ToolExchange = { request, reply, createContext };
    const { status, text, errorCode } = await answerMessage(exchange, body);
    return () => {
      const { traceparent } = message.params._meta;
      if (typeof traceparent === 'string') request.report.traceparent = traceparent;
      reportFailure(exchange);
      if (errorCode !== undefined) request.report.errorCode = String(errorCode);
      reply.code(status);
      return text === '' ? reply.send() : sendJson(reply, text);
    };
  };
  app.route({
    method: [...app.supportedMethods],
    url: '',
    config: {
      readTarget(request) {
        if (request.method !== 'POST') return OTHER_METHOD;
        const { method = '', name } = readHead(request);
        if (FREE_METHOD.test(method)) return FREE;
        const target = method === CALL_METHOD ? findTarget(name) : NO_CALL;
        return target.mayBegin && !canReadEarly(request) ? { ...target, mayBegin: false } : target;
      },
      readBodyTarget(request) {
        const { method, params } = toMessage(request.body);
        const head = readHead(request);
        // Headers that name another method are refused, and nothing is called.
        const isOpen = head.name === undefined && (head.method ?? CALL_METHOD) === CALL_METHOD;
        return isOpen && method === CALL_METHOD ? findTarget(params.name) : undefined;
      },
      begin: async (request, reply) => answer(request, reply, readJson(await readEarly(request))),
    },
    handler: toHandler((request, reply) => answer(request, reply, request.body)),
  });
}

/** The target of a call of an operation. */
function toTarget({ name, scope, deprecation, freeForKey, mayBegin, cost = 1 }: Operation): RequestTarget {
  return { ...NO_CALL, calls: [name], cost, scope, deprecation, freeForKey, mayBegin };
}

/** Returns an ApiError for a body that cannot be read; the endpoint responds with it in JSON-RPC. */
function readJson(bytes: Uint8Array): unknown {
  try {
    return parseJson(decodeBody(bytes));
  } catch (error) {
    return error;
  }
}

/** The rehearsed error, if it is the response to the request and not the result of a call. */
function findRehearsedError(request: FastifyRequest, { method }: Message): ApiError | undefined {
  const { rehearsal, target } = request.admission;
  // Admission finds a missing scope if the headers name the tool.
  const isOfRequest =
    method !== CALL_METHOD ||
    (rehearsal?.code === 'insufficient_scope' && readHead(request).name !== undefined);
  return isOfRequest ? rehearsal?.createError(target.scope) : undefined;
}

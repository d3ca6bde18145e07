import {
  isJSONRPCRequest,
  type JSONRPCRequest,
  type JSONRPCResponse,
  PerRequestHTTPServerTransport,
  type RequestId,
} from '@modelcontextprotocol/server';
import type { FastifyRequest } from 'fastify';
import type { Definition } from '../../definition/definition.js';
import { ApiError } from '../../errors/api-error.js';
import type { ToolExchange } from './call-tool.js';
import { CALL_METHOD, REVISION, REVISION_META, toMessage } from './message.js';
import { createToolServer, type Handling } from './tool-server.js';
import type { Tool } from './tools.js';

/**
 * Whether a message is a call of the current revision whose headers repeat its body word for word. Nearly every message
 * is. The SDK would compare nothing else.
 */
export function isPlainCall({ headers }: FastifyRequest, body: unknown): body is JSONRPCRequest {
  const { method, params } = toMessage(body);
  return (
    method === CALL_METHOD &&
    headers['mcp-method'] === CALL_METHOD &&
    headers['mcp-name'] === params.name &&
    headers['mcp-protocol-version'] === REVISION &&
    params._meta[REVISION_META] === REVISION &&
    // A connected server answers nothing else.
    isJSONRPCRequest(body)
  );
}

/** Tells the SDK what {@link isPlainCall} has found. */
const CLASSIFICATION = { era: 'modern', revision: REVISION } as const;

interface PlainCall extends Handling {
  /** Takes the SDK's answer. */
  readonly settle: (answer: JSONRPCResponse) => void;
}

/**
 * Answers plain calls with one server of the SDK. A server, a Request and a Response for each would take six times the CPU.
 * The SDK still parses and checks every call, and writes its result.
 *
 * All callers share that server, so each call gets an id of its own there. Only calls may reach the server, because a
 * notification could cancel another caller's call.
 *
 * @returns a function that resolves with JSON, or with undefined if the SDK refuses the call. No tool has run then.
 */
export function createPlainCalls(
  definition: Pick<Definition, 'identity' | 'root'>,
  tools: ReadonlyMap<string, Tool>,
) {
  // As in the request queue of http-server, a Map would keep requests that have ended: its replaced tables refer to them
  // until they are collected themselves.
  const calls: Record<RequestId, PlainCall> = {};
  const findHandling = (id: RequestId) => calls[id] as PlainCall;
  const server = createToolServer({ definition, tools, revisions: [REVISION], findHandling });
  // A server is of this revision only with a transport of this class.
  const transport = new PerRequestHTTPServerTransport({ classification: CLASSIFICATION });
  transport.send = async (message) => {
    if ('result' in message || 'error' in message) calls[message.id as RequestId]?.settle(message);
  };
  const connected = server.connect(transport);
  let lastId = 0;

  return async (exchange: ToolExchange, message: JSONRPCRequest): Promise<string | undefined> => {
    await connected;
    lastId += 1;
    const id = lastId;
    try {
      const answer = await new Promise<JSONRPCResponse>((settle) => {
        calls[id] = { exchange, isAnswered: false, settle };
        transport.onmessage?.({ ...message, id }, { classification: CLASSIFICATION });
      });
      if ('result' in answer) return JSON.stringify({ ...answer, id: message.id });
      if (!calls[id]?.isAnswered) return undefined;
      throw new ApiError('internal_error', { cause: new Error(answer.error.message) });
    } finally {
      delete calls[id];
    }
  };
}

import {
  createMcpHandler,
  isLegacyRequest,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import type { FastifyBaseLogger } from 'fastify';
import type { Definition } from '../../definition/definition.js';
import { ApiError } from '../../errors/api-error.js';
import type { ToolExchange } from './call-tool.js';
import { createPlainCalls, isPlainCall } from './plain-calls.js';
import { findRefusal, type SdkError, SESSION_REVISIONS, toErrorText, toRefusal } from './refusals.js';
import { createToolServer, type Handling } from './tool-server.js';
import type { Tool } from './tools.js';

const ACCEPTED = 'application/json, text/event-stream';

export interface EndpointOptions {
  readonly definition: Pick<Definition, 'identity' | 'root'>;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly log: FastifyBaseLogger;
}

/** The response to a message */
interface Answer {
  readonly status: number;
  /** JSON; empty for a notification */
  readonly text: string;
  /** The code of a JSON-RPC error; undefined for the result of a tool */
  readonly errorCode: number | undefined;
}

/**
 * Answers a message.
 *
 * @param body undefined if there is none, an ApiError if it cannot be read
 * @throws ApiError internal_error when the SDK has failed; a tool never does
 */
type Endpoint = (exchange: ToolExchange, body: unknown) => Promise<Answer>;

/**
 * Answers messages with the SDK. Every message but a plain call has a server of its own, as the SDK asks. So has a plain
 * call that the SDK refuses, so that the error is the same.
 */
export function createEndpoint({ definition, tools, log }: EndpointOptions): Endpoint {
  /** By the Request that stands for the message, because the SDK passes that on. */
  const handlings = new WeakMap<Request, Handling>();
  const toServer = (request: Request) => {
    const handling = handlings.get(request) as Handling;
    return createToolServer({
      definition,
      tools,
      revisions: SESSION_REVISIONS,
      findHandling: () => handling,
    });
  };
  // The handler answers with JSON unless a tool sends something before its result, which none does.
  const { fetch: answerStateless } = createMcpHandler(({ requestInfo }) => toServer(requestInfo as Request), {
    legacy: 'reject',
    onerror: (err) => log.debug({ err }, 'the SDK refused a message'),
  });
  const answerSession = async (request: Request, parsedBody: unknown) => {
    const server = toServer(request);
    // The SDK's own handler of older revisions would answer with a stream of one event.
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport);
    const response = await transport.handleRequest(request, { parsedBody });
    await server.close();
    return response;
  };
  const answerPlainCall = createPlainCalls(definition, tools);
  return async (exchange, body) => {
    const refusal = findRefusal(exchange.request, body);
    if (refusal !== undefined)
      return { status: refusal.status, text: toErrorText(refusal, body), errorCode: refusal.code };
    const result = isPlainCall(exchange.request, body) ? await answerPlainCall(exchange, body) : undefined;
    if (result !== undefined) return { status: 200, text: result, errorCode: undefined };
    const request = toWebRequest(exchange);
    const handling: Handling = { exchange, isAnswered: false };
    handlings.set(request, handling);
    const response = await ((await isLegacyRequest(request, body))
      ? answerSession(request, body)
      : answerStateless(request, { parsedBody: body }));
    const { status } = response;
    const text = await response.text();
    const error = handling.isAnswered && response.ok ? undefined : readError(text);
    if (error === undefined) return { status, text, errorCode: undefined };
    const refused = await toRefusal(status, error, body);
    if (refused === undefined) throw new ApiError('internal_error', { cause: new Error(text) });
    return { status, text: toErrorText(refused, body), errorCode: refused.code };
  };
}

/** The error in a response that the SDK wrote itself: an error, or a short result */
function readError(text: string): SdkError | undefined {
  return text === '' ? undefined : (JSON.parse(text) as { readonly error?: SdkError }).error;
}

/**
 * The request for the SDK, with the headers that the SDK reads. The body has been read, and admission has checked its
 * media type. The response is JSON whatever a client accepts, but the SDK demands that the client accept both kinds.
 */
function toWebRequest({ request }: ToolExchange): Request {
  const headers = new Headers({ accept: ACCEPTED, 'content-type': 'application/json' });
  for (const [name, value] of Object.entries(request.headers))
    if (name.startsWith('mcp-')) headers.set(name, String(value));
  return new Request('http://localhost/', { method: 'POST', headers });
}

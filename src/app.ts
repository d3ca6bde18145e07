import { randomUUID } from 'node:crypto';
import { METHODS } from 'node:http';
import type { AnyTRPCRouter } from '@trpc/server';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { toApiError } from './error-mapping.js';
import { ApiError } from './errors.js';
import { type AdmissionOptions, registerAdmission } from './http/admission.js';
import { CONNECTION_LIMITS, type ConnectionLimits, limitRequestsPerSocket } from './http/connections.js';
import { type DocsOptions, registerDocs } from './http/docs.js';
import { createReadinessCheck, type HealthOptions, registerHealth } from './http/health.js';
import { decodeBody, parseJson, sendJson } from './http/json.js';
import { createMetrics, type MetricsOptions, registerMetrics } from './http/metrics.js';
import { listOperations } from './http/operations.js';
import { createOverloadMonitor, type OverloadOptions } from './http/overload.js';
import { handleParserError, rejectSocket, trackResponses } from './http/parser-error.js';
import { createProxyTrust } from './http/proxy-trust.js';
import { ignoreBodies, readBodyAs } from './http/request-body.js';
import { findMessageError } from './http/request-checks.js';
import type { Dependencies } from './http/request-context.js';
import { identify, reportRequests } from './http/request-log.js';
import { toRoutableUrl } from './http/request-target.js';
import { registerRest } from './http/rest.js';
import { registerRpc } from './http/rpc.js';
import { sendRpcError } from './http/rpc-stream.js';
import { registerSecurity } from './http/security-headers.js';
import { REST_PREFIX, TRPC_PREFIX } from './protocol.js';

const BODY_LIMIT_BYTES = 64 * 1024;
/** Node.js limits the request line and headers to 16 KiB in total; path parameters need no limit of their own. */
const MAX_PARAM_LENGTH = 16 * 1024;
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

export interface AppOptions
  extends AdmissionOptions,
    HealthOptions,
    DocsOptions,
    MetricsOptions,
    OverloadOptions,
    Dependencies {
  readonly log: FastifyBaseLogger;
  readonly router: AnyTRPCRouter;
  /** Addresses and CIDR blocks of proxies whose forwarded headers are trusted. */
  readonly trustProxy: readonly string[];
  /** Overrides individual defaults. */
  readonly connections?: Partial<ConnectionLimits>;
}

/** The HTTP server: a list of everything that happens to a request. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const app = openServer(options);
  const overload = createOverloadMonitor(options);
  app.addHook('onClose', async () => overload.close());
  const checkReadiness = createReadinessCheck(options.checkReadiness);
  const metrics = createMetrics({ ...options, overload, checkReadiness });

  reportRequests(app, Object.keys(options.router._def.procedures), metrics);
  registerSecurity(app, options);
  app.addHook('onRequest', (request, reply, next) => {
    reply.header('x-request-id', request.id);
    // Within the protocols, admission does this, so that the response has limit headers.
    next(request.apiProtocol === undefined ? findMessageError(request) : undefined);
  });
  const isClosing = endConnectionsWhenClosing(app);
  answerErrorsWith(app, sendError);
  ignoreBodies(app);

  registerHealth(app, { ...options, checkReadiness, isClosing });
  registerMetrics(app, metrics);
  await registerDocs(app, options);
  const rest = async (scope: FastifyInstance) => {
    const corsMethods = listOperations(options.router).map(({ method }) => method);
    await registerAdmission(scope, { ...options, overload, metrics, corsMethods, protocol: 'rest' });
    readBodyAs(scope, (bytes) => parseJson(decodeBody(bytes)));
    registerRest(scope, options);
    answerErrorsWith(scope, sendError);
  };
  const trpc = async (scope: FastifyInstance) => {
    const corsMethods = ['GET', 'POST'];
    await registerAdmission(scope, { ...options, overload, metrics, corsMethods, protocol: 'trpc' });
    readBodyAs(scope, decodeBody);
    registerRpc(scope, options);
    answerErrorsWith(scope, sendRpcError);
  };
  await app.register(rest, { prefix: REST_PREFIX });
  await app.register(trpc, { prefix: TRPC_PREFIX });
  return app;
}

/** Settings that apply before there is a request: connections, and how their bytes are parsed. */
function openServer({ log, trustProxy, ...options }: AppOptions): FastifyInstance {
  const connections = { ...CONNECTION_LIMITS, ...options.connections };
  const { headersTimeout, connectionsCheckingInterval } = connections;
  const app: FastifyInstance = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    // A child logger per request would cost more than the log line itself, which has the request id anyway.
    childLoggerFactory: (logger) => logger,
    genReqId: ({ headers }) => readRequestId(headers['x-request-id']),
    trustProxy: trustProxy.length > 0 ? createProxyTrust(trustProxy) : false,
    rewriteUrl: toRoutableUrl,
    // Parses the query once, the way tRPC does. URLSearchParams drops a leading `?`, so this one protects the query's.
    routerOptions: {
      maxParamLength: MAX_PARAM_LENGTH,
      querystringParser: (text) => new URLSearchParams(`?${text}`) as never,
    },
    bodyLimit: BODY_LIMIT_BYTES,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    requestTimeout: connections.requestTimeout,
    keepAliveTimeout: connections.keepAliveTimeout,
    // Otherwise Node.js itself would reject requests without a Host header.
    http: { requireHostHeader: false, headersTimeout, connectionsCheckingInterval },
    clientErrorHandler: handleParserError,
  });
  app.server.maxConnections = connections.maxConnections;
  limitRequestsPerSocket(app, connections.maxRequestsPerSocket);
  trackResponses(app);
  addUnusualMethods(app);
  // An unknown Expect may be ignored (RFC 9110, section 10.1.1). Otherwise Node.js itself would reject it.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', ({ headers }, socket) => {
    // Node.js has given up the socket: nothing else reads from it or handles its errors.
    socket.on('error', () => socket.destroy()).resume();
    const error = new ApiError('invalid_request', { message: 'CONNECT is not supported.' });
    void rejectSocket(socket, error, readRequestId(headers['x-request-id']));
  });
  return app;
}

/** Keeps the client's own id if it is safe to log. */
function readRequestId(header: string | string[] | undefined): string {
  return typeof header === 'string' && REQUEST_ID.test(header) ? header : randomUUID();
}

/** Every error passes through here: its cause goes to the log, and the client can quote the request id. */
function answerErrorsWith(app: FastifyInstance, send: typeof sendRpcError): void {
  app.setErrorHandler((error, request, reply) => {
    const apiError = toApiError(error);
    request.errorCode = apiError.code;
    // An overload error has no cause, and an overloaded process no time for a second log line.
    if (apiError.status >= 500 && apiError.cause !== undefined)
      request.log.error({ ...identify(request), err: apiError.cause }, apiError.message);
    return send(apiError, request, reply.headers(apiError.headers));
  });
  app.setNotFoundHandler(() => {
    throw new ApiError('not_found');
  });
}

function sendError({ status, body }: ApiError, _request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendJson(reply.code(status), JSON.stringify(body));
}

/**
 * Once the server is closing, tells clients that their connection ends after this response (RFC 9112, section 9.6).
 * Returns whether it is closing.
 */
function endConnectionsWhenClosing(app: FastifyInstance): () => boolean {
  let isClosing = false;
  app.addHook('preClose', async () => {
    isClosing = true;
  });
  app.addHook('onSend', (_request, reply, payload, next) => {
    if (isClosing) reply.header('connection', 'close');
    next(null, payload);
  });
  return () => isClosing;
}

/** Fastify knows only the common methods. The others get a 404 or 405, like any method that a path does not support. */
function addUnusualMethods(app: FastifyInstance): void {
  const unusual = METHODS.filter((method) => method !== 'CONNECT' && !app.supportedMethods.includes(method));
  for (const method of unusual) app.addHttpMethod(method, { hasBody: true });
}

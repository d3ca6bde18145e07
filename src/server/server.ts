import { randomUUID } from 'node:crypto';
import { METHODS } from 'node:http';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { ApiError } from '../errors/api-error.js';
import { CONNECTION_LIMITS, type ConnectionLimits, limitRequestsPerSocket } from './connections.js';
import { handleParserError, rejectSocket } from './parser-error.js';
import { createProxyTrust } from './proxy-trust.js';
import type { RequestQueue } from './request-queue.js';
import { toRoutableUrl } from './request-target.js';

const BODY_LIMIT_BYTES = 64 * 1024;
/** Node.js limits the request line and headers to 16 KiB in total; path parameters need no limit of their own. */
const MAX_PARAM_LENGTH = 16 * 1024;
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

export interface ServerOptions {
  readonly log: FastifyBaseLogger;
  /** Addresses and CIDR blocks of proxies whose forwarded headers are trusted */
  readonly trustProxy: readonly string[];
  /** Overrides individual defaults */
  readonly connections?: Partial<ConnectionLimits>;
}

/** Settings that apply before there is a request: connections, and how their bytes are parsed. */
export function openServer(
  { log, trustProxy, ...options }: ServerOptions,
  queue: RequestQueue,
): FastifyInstance {
  const connections = { ...CONNECTION_LIMITS, ...options.connections };
  const { headersTimeout, requestTimeout, keepAliveTimeout, connectionsCheckingInterval } = connections;
  const timeouts = { headersTimeout, requestTimeout, keepAliveTimeout, connectionsCheckingInterval };
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
    // No route has a schema for Fastify. Its default compilers take about 5 % of the start to load.
    schemaController: { compilersFactory: { buildValidator: rejectSchema, buildSerializer: rejectSchema } },
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // Otherwise Node.js itself would reject requests without a Host header.
    serverFactory: (handler) => queue.createServer({ ...timeouts, requireHostHeader: false }, handler),
    clientErrorHandler: handleParserError,
  });
  app.server.maxConnections = connections.maxConnections;
  app.server.timeout = connections.timeout;
  // A client that ends its side behind its request waits for the answer (RFC 9112, section 9.6). Idle ones are closed.
  Object.assign(app.server, { httpAllowHalfOpen: true });
  limitRequestsPerSocket(app, connections.maxRequestsPerSocket);
  addUnusualMethods(app);
  // An unknown Expect may be ignored (RFC 9110, section 10.1.1). Otherwise Node.js itself would reject it.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', ({ headers }, socket) => {
    // Node.js has given up the socket: nothing else reads from it or handles its errors.
    socket.on('error', () => socket.destroy()).resume();
    const error = new ApiError('invalid_request', { message: 'CONNECT is not supported.' });
    rejectSocket(socket, error, readRequestId(headers['x-request-id']));
  });
  return app;
}

function rejectSchema(): never {
  throw new TypeError('Inputs are checked with zod, not by schemas of Fastify');
}

/** Keeps the client's own id if it is safe to log. */
function readRequestId(header: string | string[] | undefined): string {
  return typeof header === 'string' && REQUEST_ID.test(header) ? header : randomUUID();
}

/** Fastify knows only the common methods. The others get a 404 or 405, like any method that a path does not support. */
function addUnusualMethods(app: FastifyInstance): void {
  const unusual = METHODS.filter((method) => method !== 'CONNECT' && !app.supportedMethods.includes(method));
  for (const method of unusual) app.addHttpMethod(method, { hasBody: true });
}

import { randomUUID } from 'node:crypto';
import { type IncomingHttpHeaders, type IncomingMessage, METHODS } from 'node:http';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { addressId, createProxyTrust, findClientAddress } from './client-address.js';
import { closeAfterRequests } from './lingering-close.js';
import { createOverloadMonitor, type OverloadMonitor, type OverloadOptions } from './overload.js';
import { createParserErrorHandler, type Refuse, rejectSocket } from './parser-error.js';
import { RequestQueue } from './request-queue.js';

export { OVERLOAD_REASONS, type OverloadMonitor, type OverloadOptions } from './overload.js';
export type { Refusal, RefusalReason, Refuse } from './parser-error.js';

declare module 'node:http' {
  interface IncomingMessage {
    /** When the request arrived, before it waited in the queue, by performance.now() */
    receivedAt?: number;
    /** How long it waited in the queue, in milliseconds; undefined if it started at once */
    queuedMs?: number;
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The id of the client's address, by which requests without a valid key are counted */
    addressId: string;
  }
}

/** Node.js limits the request line and headers to this in total, so path parameters need no lower limit. */
const MAX_PARAM_LENGTH = 16 * 1024;
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;
/**
 * The beginning of an absolute form. No authority is longer (RFC 1035, section 2.3.4), and the time to encode one that is
 * not ASCII grows with the square of its length.
 */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]{1,300}(?:[/?#]|$)/i;
/** A path without a route. */
const UNROUTABLE = '/-';

/** How much of a process one client, or all together, may occupy. In milliseconds, named as in Node.js. */
const CONNECTION_LIMITS = {
  // To the end of the headers: the slowest honest client sends them in a second or two.
  headersTimeout: 15_000,
  // To the end of the body: even the slowest mobile networks send the largest body in this time.
  requestTimeout: 30_000,
  // Without a byte in either direction during a request. Every response takes a few seconds at most, so by then the client
  // has left, or does not read.
  timeout: 30_000,
  // The first two may fire this much later. Each check walks over all connections; at this interval, its cost cannot be
  // measured.
  connectionsCheckingInterval: 5_000,
  // Between requests; KEEP_ALIVE_SECONDS replaces it. Proxies usually close after 60 s. They have to close first, or they
  // might send on a closed connection.
  keepAliveTimeout: 72_000,
  // Further connections are closed at once. An idle connection takes about 10 KB. Running out of file descriptors would be
  // worse, because the database needs some too.
  maxConnections: 10_000,
};

/** For JSON responses: should a browser ever render one as a page, it may neither load anything nor be framed. */
const SECURITY_HEADERS = {
  // A page, a 404 or a 410 in a shared cache would reach other callers, and later. Responses that may be cached say so.
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  // Does not affect the configured origins: their requests are CORS requests, which this policy exempts (Fetch, 3.7).
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** One year. Subdomains are not ours to decide about. */
const STRICT_TRANSPORT = { 'strict-transport-security': 'max-age=31536000' };

export interface ServerOptions extends OverloadOptions {
  readonly log: FastifyBaseLogger;
  readonly bodyLimitBytes: number;
  /** Addresses and CIDR blocks of proxies whose forwarded headers are trusted */
  readonly trustProxy: readonly string[];
  /** The sender of a request, as far as its headers tell, and whether the request goes before others */
  readonly identify: (request: IncomingMessage) => {
    /** Undefined for a client that is known by its address alone */
    readonly id: string | undefined;
    readonly isPreferred: boolean;
  };
  /** The response to input that is no request */
  readonly refuse: Refuse;
  /** Whether a text may have a secret in it. Such a text is no request id, because request ids are logged and sent back. */
  readonly mayHaveSecret: (text: string) => boolean;
  /** Whether clients reach the server by HTTPS only */
  readonly isSecure: boolean;
  /** Overrides individual defaults */
  readonly connections?: Partial<typeof CONNECTION_LIMITS> | undefined;
}

/** A server without routes, and its overload monitor, which closes with the server. */
export function openServer(options: ServerOptions): {
  readonly app: FastifyInstance;
  readonly overload: OverloadMonitor;
} {
  const readAddressId = createAddressReader(options.trustProxy);
  const queue = new RequestQueue((request) => {
    const { id, isPreferred } = options.identify(request);
    return { id: id ?? readAddressId(request), isPreferred };
  });
  const app = createApp(options, queue);
  app.decorateRequest('addressId', '');
  const headers = { ...SECURITY_HEADERS, ...(options.isSecure && STRICT_TRANSPORT) };
  // Runs before any other hook can respond, so that errors have these headers, too, and all that counts or logs has the
  // address.
  app.addHook('onRequest', (request, reply, next) => {
    request.addressId = readAddressId(request.raw);
    reply.headers(headers);
    next();
  });
  const overload = createOverloadMonitor(options);
  app.addHook('onClose', async () => overload.close());
  return { app, overload };
}

function createAddressReader(trustProxy: readonly string[]): (request: IncomingMessage) => string {
  const isProxy = createProxyTrust(trustProxy);
  return (request) => addressId(findClientAddress(request, isProxy));
}

/** Settings that apply before there is a request: connections, and how their bytes are parsed. */
function createApp(
  { log, connections, bodyLimitBytes, mayHaveSecret, refuse }: ServerOptions,
  queue: RequestQueue,
): FastifyInstance {
  const { timeout, maxConnections, ...timeouts } = { ...CONNECTION_LIMITS, ...connections };
  /** Keeps the client's own id if it is safe to log. */
  const readRequestId = ({ 'x-request-id': id }: IncomingHttpHeaders) =>
    typeof id === 'string' && REQUEST_ID.test(id) && !mayHaveSecret(id) ? id : randomUUID();
  const app: FastifyInstance = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    // A child logger per request would cost more than the log line itself, which has the request id anyway.
    childLoggerFactory: (logger) => logger,
    genReqId: ({ headers }) => readRequestId(headers),
    rewriteUrl: toRoutableUrl,
    // Parses the query once, as tRPC does. URLSearchParams drops a leading `?`; the added one protects the query's own.
    routerOptions: {
      maxParamLength: MAX_PARAM_LENGTH,
      querystringParser: (text) => new URLSearchParams(`?${text}`) as never,
    },
    bodyLimit: bodyLimitBytes,
    // No route has a schema for Fastify. Its default compilers take about 5 % of the start to load.
    schemaController: { compilersFactory: { buildValidator: rejectSchema, buildSerializer: rejectSchema } },
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // Otherwise Node.js itself would reject requests without a Host header.
    serverFactory: (handler) => queue.createServer({ ...timeouts, requireHostHeader: false }, handler),
    clientErrorHandler: createParserErrorHandler(refuse),
  });
  app.server.maxConnections = maxConnections;
  app.server.timeout = timeout;
  // A client that ends its side after a request waits for the response (RFC 9112, section 9.6). Idle connections are closed.
  Object.assign(app.server, { httpAllowHalfOpen: true });
  closeAfterRequests(app.server);
  addUnusualMethods(app);
  // An unknown Expect may be ignored (RFC 9110, section 10.1.1). Otherwise Node.js itself would reject it.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', ({ headers }, socket) => {
    // Node.js has given up the socket: nothing else reads from it or handles its errors.
    socket.on('error', () => socket.destroy()).resume();
    rejectSocket(socket, refuse('connect'), readRequestId(headers));
  });
  return app;
}

function rejectSchema(): never {
  throw new TypeError('Inputs are checked with zod, not by schemas of Fastify');
}

/** Fastify knows only the common methods. The others get a 404 or 405, like any method that a path does not support. */
function addUnusualMethods(app: FastifyInstance): void {
  const unusual = METHODS.filter((method) => method !== 'CONNECT' && !app.supportedMethods.includes(method));
  for (const method of unusual) app.addHttpMethod(method, { hasBody: true });
}

/**
 * Converts any request target (RFC 9112, section 3.2) to the path and query to route by. It drops the host of an
 * absolute form and any fragment, takes broken percent-encoding literally, and maps a target without a path (`*`, an
 * authority) to a path without a route. So every request passes the same hooks, and none fails in Fastify's router.
 */
function toRoutableUrl({ url = '' }: IncomingMessage): string {
  const [target = ''] = (url.startsWith('/') ? url : readAbsoluteForm(url)).split('#', 1);
  const end = target.indexOf('?');
  const path = end === -1 ? target : target.slice(0, end);
  return canDecode(path) ? target : path.replaceAll('%', '%25') + target.slice(path.length);
}

function readAbsoluteForm(url: string): string {
  if (!ABSOLUTE_FORM.test(url) || !URL.canParse(url)) return UNROUTABLE;
  const { pathname, search } = new URL(url);
  return pathname + search;
}

function canDecode(path: string): boolean {
  if (!path.includes('%')) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

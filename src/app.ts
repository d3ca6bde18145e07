import { createHash, randomUUID } from 'node:crypto';
import { METHODS } from 'node:http';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { ApiError, toApiError } from './errors.js';
import { type AdmissionOptions, registerAdmission } from './http/admission.js';
import { CONNECTION_LIMITS, type ConnectionLimits, limitRequestsPerSocket } from './http/connections.js';
import { type DocsOptions, registerDocs } from './http/docs.js';
import { createReadinessCheck, type HealthOptions, registerHealth } from './http/health.js';
import { decodeBody, parseJson, sendJson } from './http/json.js';
import { createMetrics, type MetricsOptions, registerMetrics } from './http/metrics.js';
import { createOverloadMonitor, type OverloadOptions } from './http/overload.js';
import { answerParserError, refuse } from './http/parser-error.js';
import { reportRequests } from './http/request-log.js';
import { toRoutableUrl } from './http/request-target.js';
import { registerRest } from './http/rest.js';
import { registerRpc } from './http/rpc.js';
import { registerSecurity } from './http/security-headers.js';
import { REST_PREFIX, TRPC_PREFIX } from './protocol.js';
import { appRouter } from './router.js';
import { type Service, toErrorShape } from './trpc.js';

const BODY_LIMIT_BYTES = 64 * 1024;
/** Node.js bounds the whole request line and headers by 16 KiB; a path value needs no bound of its own. */
const MAX_PARAM_LENGTH = 16 * 1024;
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

export interface AppOptions
  extends AdmissionOptions,
    HealthOptions,
    DocsOptions,
    MetricsOptions,
    OverloadOptions {
  readonly log: FastifyBaseLogger;
  readonly service: Service;
  /** Addresses and CIDR blocks whose forwarded headers count */
  readonly trustProxy: readonly string[];
  /** What is given replaces the default. */
  readonly connections?: Partial<ConnectionLimits>;
}

/** The service without its process: reads as the list of what happens to a request. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const app = openServer(options);
  const overload = createOverloadMonitor(options);
  app.addHook('onClose', async () => overload.close());
  const checkReadiness = createReadinessCheck(options.checkReadiness);
  const metrics = createMetrics({ ...options, overload, checkReadiness });

  reportRequests(app, Object.keys(appRouter._def.procedures), metrics);
  registerSecurity(app, options);
  app.addHook('onRequest', (request, reply, next) => {
    reply.header('x-request-id', request.id);
    next();
  });
  const isClosing = endConnectionsWhenClosing(app);
  answerErrorsWith(app, (error) => error.body);
  ignoreBodies(app);

  registerHealth(app, { ...options, checkReadiness, isClosing });
  registerMetrics(app, metrics);
  await registerDocs(app, options);
  const rest = async (face: FastifyInstance) => {
    await registerAdmission(face, { ...options, overload, metrics, protocol: 'rest' });
    readBodyAs(face, (bytes) => parseJson(decodeBody(bytes)));
    registerRest(face, { ...options, router: appRouter });
    answerErrorsWith(face, (error) => error.body);
  };
  const rpc = async (face: FastifyInstance) => {
    await registerAdmission(face, { ...options, overload, metrics, protocol: 'trpc' });
    readBodyAs(face, decodeBody);
    registerRpc(face, { ...options, router: appRouter });
    answerErrorsWith(face, (error) => ({ error: toErrorShape(error) }));
  };
  await app.register(rest, { prefix: REST_PREFIX });
  await app.register(rpc, { prefix: TRPC_PREFIX });
  return app;
}

/** What is decided of connections and of the bytes on them, before there is a request. */
function openServer({ log, trustProxy, ...options }: AppOptions): FastifyInstance {
  const connections = { ...CONNECTION_LIMITS, ...options.connections };
  const { headersTimeout, connectionsCheckingInterval } = connections;
  const app: FastifyInstance = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    // A logger for each request would cost more than its line: what is logged of a request names it.
    childLoggerFactory: (logger) => logger,
    genReqId: ({ headers }) => readRequestId(headers['x-request-id']),
    trustProxy: trustProxy.length > 0 ? [...trustProxy] : false,
    rewriteUrl: toRoutableUrl,
    // The query is read once, and as tRPC reads it. Of a text that begins with `?` URLSearchParams drops that.
    routerOptions: {
      maxParamLength: MAX_PARAM_LENGTH,
      querystringParser: (text) => new URLSearchParams(`?${text}`) as never,
    },
    bodyLimit: BODY_LIMIT_BYTES,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    requestTimeout: connections.requestTimeout,
    keepAliveTimeout: connections.keepAliveTimeout,
    // Without a Host, Node.js would answer by itself.
    http: { requireHostHeader: false, headersTimeout, connectionsCheckingInterval },
    clientErrorHandler: answerParserError,
  });
  app.server.maxConnections = connections.maxConnections;
  limitRequestsPerSocket(app, connections.maxRequestsPerSocket);
  addUnusualMethods(app);
  // An Expect that is not understood may be ignored (RFC 9110, section 10.1.1); Node.js would answer it by itself.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', (_request, socket) => refuse(socket, 'CONNECT is not answered here.'));
  return app;
}

/** A client's own id is kept when it is one that a log can hold. */
function readRequestId(header: string | string[] | undefined): string {
  return typeof header === 'string' && REQUEST_ID.test(header) ? header : randomUUID();
}

/** Every failure, whoever raised it, leaves through here. The log has the cause; the client has the request id. */
function answerErrorsWith(app: FastifyInstance, toBody: (error: ApiError) => object): void {
  app.setErrorHandler((error, request, reply) => {
    const apiError = toApiError(error);
    request.errorCode = apiError.code;
    // An overload is no failure with a cause, and has no time for a second line.
    if (apiError.status >= 500 && apiError.cause !== undefined)
      request.log.error({ reqId: request.id, err: apiError.cause }, apiError.message);
    return sendJson(reply.code(apiError.status).headers(apiError.headers), JSON.stringify(toBody(apiError)));
  });
  app.setNotFoundHandler(() => {
    throw new ApiError('not_found', 'There is no such route.');
  });
}

/**
 * Tells clients not to send another request on a connection that is about to end (RFC 9112, section 9.6). Returns what
 * tells whether that is so.
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

/** Fastify routes common methods only; the others are known too, so that they are refused like any other: 404 or 405. */
function addUnusualMethods(app: FastifyInstance): void {
  const unusual = METHODS.filter((method) => method !== 'CONNECT' && !app.supportedMethods.includes(method));
  for (const method of unusual) app.addHttpMethod(method, { hasBody: true });
}

/** Outside the faces nothing takes a body. */
function ignoreBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

/** One reader for every media type: which ones are allowed was decided before any body was read. */
function readBodyAs(app: FastifyInstance, read: (bytes: Uint8Array) => unknown): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (request: FastifyRequest, bytes: Buffer) => {
    if (request.headers['idempotency-key'] !== undefined)
      request.bodyHash = createHash('sha256').update(bytes).digest();
    return read(bytes);
  });
}

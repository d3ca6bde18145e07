import { createHash, randomUUID } from 'node:crypto';
import { METHODS } from 'node:http';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { ApiError, toApiError } from './errors.js';
import { type DocsOptions, registerDocs } from './http/docs.js';
import { type GateOptions, guardFace } from './http/gate.js';
import { type HealthOptions, registerHealth } from './http/health.js';
import { decodeBody, parseJson, toJsonBytes } from './http/json.js';
import { answerParserError, refuse } from './http/parser-error.js';
import { REST_PREFIX, RPC_PREFIX } from './http/prefixes.js';
import { registerRest } from './http/rest.js';
import { registerRpc } from './http/rpc.js';
import { registerSecurity } from './http/security.js';
import { toRoutableUrl } from './http/target.js';
import { appRouter } from './router.js';
import { type Service, toErrorShape } from './trpc.js';

const BODY_LIMIT_BYTES = 64 * 1024;
/** Node.js bounds the whole request line and headers by 16 KiB; a path value needs no bound of its own. */
const MAX_PARAM_LENGTH = 16 * 1024;
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

export interface AppOptions extends GateOptions, HealthOptions, DocsOptions {
  readonly log: FastifyBaseLogger;
  readonly service: Service;
  /** Addresses and CIDR blocks whose forwarded headers count */
  readonly trustProxy: readonly string[];
}

/** The service without its process: reads as the list of what happens to a request. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const app = Fastify({
    loggerInstance: options.log,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: ({ headers }) => readRequestId(headers['x-request-id']),
    trustProxy: options.trustProxy.length > 0 ? [...options.trustProxy] : false,
    rewriteUrl: toRoutableUrl,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    bodyLimit: BODY_LIMIT_BYTES,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    requestTimeout: 30_000,
    // Without a Host, Node.js would answer by itself. What a client takes too long to send is looked for every 5 s.
    http: { requireHostHeader: false, headersTimeout: 15_000, connectionsCheckingInterval: 5_000 },
    clientErrorHandler: answerParserError,
  });
  addUnusualMethods(app);
  // An Expect that is not understood may be ignored (RFC 9110, section 10.1.1); Node.js would answer it by itself.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', (_request, socket) => refuse(socket, 'CONNECT is not answered here.'));

  await registerSecurity(app, options);
  app.addHook('onRequest', async (request, reply) => void reply.header('x-request-id', request.id));
  app.addHook('onResponse', async (request, reply) => logRequest(request, reply));
  endConnectionsWhenClosing(app);
  answerErrorsWith(app, (error) => error.body);
  ignoreBodies(app);

  registerHealth(app, options);
  await registerDocs(app, options);
  await app.register(
    async (rest) => {
      await guardFace(rest, options);
      readBodyAs(rest, (bytes) => parseJson(decodeBody(bytes)));
      registerRest(rest, { ...options, router: appRouter });
      answerErrorsWith(rest, (error) => error.body);
    },
    { prefix: REST_PREFIX },
  );
  await app.register(
    async (rpc) => {
      await guardFace(rpc, options);
      readBodyAs(rpc, decodeBody);
      registerRpc(rpc, { ...options, router: appRouter });
      answerErrorsWith(rpc, (error) => ({ error: toErrorShape(error) }));
    },
    { prefix: RPC_PREFIX },
  );
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
    if (apiError.status >= 500) request.log.error({ err: apiError.cause }, apiError.message);
    return reply
      .code(apiError.status)
      .headers(apiError.headers)
      .type('application/json')
      .send(toJsonBytes(toBody(apiError)));
  });
  app.setNotFoundHandler(() => {
    throw new ApiError('not_found', 'There is no such route.');
  });
}

/** Tells clients not to send another request on a connection that is about to end (RFC 9112, section 9.6). */
function endConnectionsWhenClosing(app: FastifyInstance): void {
  let isClosing = false;
  app.addHook('preClose', async () => {
    isClosing = true;
  });
  app.addHook('onSend', async (_request, reply) => {
    if (isClosing) reply.header('connection', 'close');
  });
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

function logRequest(request: FastifyRequest, reply: FastifyReply): void {
  const { operation } = request.routeOptions.config;
  request.log.info(
    {
      keyId: request.apiKey?.id,
      operation: typeof operation === 'function' ? operation(request) : operation,
      method: request.method,
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime * 1000) / 1000,
    },
    'request',
  );
}

import type { AnyTRPCRouter } from '@trpc/server';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type AdmissionOptions, registerAdmission } from './admission/admission.js';
import { createOriginPolicy, type OriginOptions } from './admission/cors.js';
import { findHttpError } from './admission/request-checks.js';
import { REST_PREFIX, TRPC_PREFIX } from './contract/protocol.js';
import { type DocsOptions, registerDocs } from './docs/routes.js';
import { ApiError } from './errors/api-error.js';
import { createCachedCheck, createHealth, type HealthOptions } from './monitoring/health.js';
import { createMetrics, type MetricsOptions } from './monitoring/metrics.js';
import { PROBE_PATHS, type Probes, registerProbes } from './monitoring/probes.js';
import { identify, reportRequests } from './monitoring/request-log.js';
import { toApiError } from './operations/error-mapping.js';
import { listOperations } from './operations/list-operations.js';
import { decodeBody, parseJson, sendJson } from './protocols/json.js';
import { ignoreBodies, readBodyAs } from './protocols/request-body.js';
import type { Dependencies } from './protocols/request-context.js';
import { registerRest } from './protocols/rest.js';
import { registerRpc } from './protocols/rpc.js';
import { sendRpcError } from './protocols/rpc-stream.js';
import { monitorAccepts } from './server/accept-monitor.js';
import { createOverloadMonitor, type OverloadOptions } from './server/overload.js';
import { RequestQueue } from './server/request-queue.js';
import { registerSecurity } from './server/security-headers.js';
import { openServer, type ServerOptions } from './server/server.js';

export interface AppOptions
  extends AdmissionOptions,
    HealthOptions,
    DocsOptions,
    MetricsOptions,
    OriginOptions,
    Omit<OverloadOptions, 'pool'>,
    ServerOptions,
    Dependencies {
  readonly log: FastifyBaseLogger;
  readonly router: AnyTRPCRouter;
  /** If set, another server has /metrics and /health */
  readonly metricsPort?: number | undefined;
}

export interface App {
  readonly app: FastifyInstance;
  readonly probes: Probes;
}

/** The HTTP server: a list of everything that happens to a request. */
export async function buildApp(options: AppOptions): Promise<App> {
  const { authenticator, metricsPort } = options;
  const probePaths = metricsPort === undefined ? PROBE_PATHS : [];
  const queue = new RequestQueue(
    ({ url = '', headers }) => probePaths.includes(url) || authenticator.isKnown(headers.authorization),
  );
  const app = openServer(options, queue);
  reportRequests(app, Object.keys(options.router._def.procedures), {
    countRequest: (report) => metrics.countRequest(report),
  });
  const accepts = monitorAccepts(app.server);
  const overload = createOverloadMonitor({ ...options, queue, accepts });
  app.addHook('onClose', async () => overload.close());
  const checkReadiness = createCachedCheck(options.checkReadiness);
  const metrics = createMetrics({ ...options, accepts, overload, checkReadiness });

  registerSecurity(app, options);
  app.addHook('onRequest', (request, reply, next) => {
    reply.header('x-request-id', request.id);
    // Within the protocols, admission does this, so that the response has limit headers.
    next(request.apiProtocol === undefined ? findHttpError(request) : undefined);
  });
  const isClosing = endConnectionsWhenClosing(app);
  answerErrorsWith(app, sendError);
  ignoreBodies(app);

  const probes: Probes = {
    ...createHealth({ ...options, checkReadiness, isClosing }),
    readMetrics: () => metrics.registry.metrics(),
  };
  if (metricsPort === undefined) registerProbes(app, probes);
  await registerDocs(app, options);
  const origins = createOriginPolicy(options);
  const rest = async (scope: FastifyInstance) => {
    const corsMethods = listOperations(options.router).map(({ method }) => method);
    await registerAdmission(scope, { ...options, overload, metrics, origins, corsMethods, protocol: 'rest' });
    readBodyAs(scope, (bytes) => parseJson(decodeBody(bytes)));
    registerRest(scope, options);
    answerErrorsWith(scope, sendError);
  };
  const trpc = async (scope: FastifyInstance) => {
    const corsMethods = ['GET', 'POST'];
    await registerAdmission(scope, { ...options, overload, metrics, origins, corsMethods, protocol: 'trpc' });
    readBodyAs(scope, decodeBody);
    registerRpc(scope, options);
    answerErrorsWith(scope, sendRpcError);
  };
  await app.register(rest, { prefix: REST_PREFIX });
  await app.register(trpc, { prefix: TRPC_PREFIX });
  return { app, probes };
}

/**
 * Every error but those of tRPC calls (see rpc.ts) passes through here: its cause goes to the log, and the client can
 * quote the request id.
 */
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

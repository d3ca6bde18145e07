import { maxHeaderSize } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openServer, type RefusalReason, type ServerOptions } from '@animal-store/http-server';
import type { FastifyInstance, FastifyReply } from 'fastify';
import {
  type AdmissionOptions,
  type ProtocolOptions,
  readTarget,
  registerAdmission,
} from './admission/admission.js';
import type { CorsOptions } from './admission/cors.js';
import { registerNoOAuth } from './admission/no-oauth.js';
import { findHttpError } from './admission/request-checks.js';
import { BODY_LIMIT_BYTES } from './contract/bounds.js';
import { MCP_PREFIX, REST_PREFIX, TRPC_PREFIX } from './contract/protocol.js';
import type { Definition } from './definition/definition.js';
import { registerApiCatalog } from './docs/api-catalog.js';
import { createHeaders, listFieldNames } from './docs/response-headers.js';
import { registerDocs } from './docs/routes.js';
import { ApiError } from './errors/api-error.js';
import { createErrorTable } from './errors/error-table.js';
import { createKeySearch } from './keys/format.js';
import { createMetrics, type MetricsOptions } from './monitoring/metrics.js';
import {
  createCachedCheck,
  createReadiness,
  PROBE_PATHS,
  type Probes,
  READY_PATH,
  registerProbes,
} from './monitoring/probes.js';
import { reportRequests } from './monitoring/request-log.js';
import { listOperations } from './operations/list-operations.js';
import { toLocalUrl } from './process/config.js';
import { decodeBody, ignoreBodies, parseJson, readBodyAs } from './protocols/body.js';
import { registerMcp } from './protocols/mcp/mcp.js';
import { reportError, sendJson } from './protocols/responses.js';
import { type RestOptions, registerRest } from './protocols/rest.js';
import { registerRpc } from './protocols/rpc.js';
import { sendRpcError } from './protocols/rpc-stream.js';

/** Whoever has forgotten a prefix reads it here. */
const NOTHING_HERE = `There is nothing at this address: REST is under ${REST_PREFIX}, tRPC under ${TRPC_PREFIX}, and the tools are at ${MCP_PREFIX}.`;

/** What the parts of the server take, and what they share. */
export type AppOptions = Pick<ServerOptions, 'log' | 'connections' | 'overload' | 'trustProxy'> &
  Pick<CorsOptions, 'corsOrigins'> &
  MetricsOptions &
  Omit<AdmissionOptions, 'publicUrl' | 'errors' | 'definition'> &
  Omit<RestOptions, 'publicUrl' | 'operations'> & {
    readonly definition: Definition;
    readonly host: string;
    /** Default: where the server listens */
    readonly publicUrl?: string | undefined;
    /** Builds the OpenAPI document */
    readonly buildDocument: (publicUrl: string) => Promise<object>;
    /** If set, another server has /metrics and /health */
    readonly metricsPort?: number | undefined;
  };

/** The HTTP server: a list of everything that happens to a request. */
export async function buildApp(options: AppOptions) {
  const { definition, log, limiter, authenticator } = options;
  const { mayHaveKey, redactKeys } = createKeySearch(definition.identity.keyPrefix);
  const hasProbes = options.metricsPort === undefined;
  const { app, overload } = openServer({
    ...options,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    identify({ headers, url = '' }) {
      const id = authenticator.findKnownId(headers.authorization);
      return { id, isPreferred: id !== undefined || (hasProbes && PROBE_PATHS.includes(url)) };
    },
    refuse: (reason) => REFUSALS[reason],
    mayHaveSecret: mayHaveKey,
    // Without a PUBLIC_URL the address is not known yet, but it is plain http.
    isSecure: options.publicUrl?.startsWith('https:') ?? false,
  });
  const publicUrl = createPublicUrl(app, options.host, options.publicUrl);
  const operations = listOperations(options.router);
  const checkReadiness = createCachedCheck(options.checkReadiness);
  const metrics = createMetrics({ ...options, server: app.server, overload, checkReadiness });
  // Before every other hook, so that requests which those refuse are reported, too.
  reportRequests(
    app,
    operations.map(({ name }) => name),
    { ...metrics, redactKeys },
    (request) => readTarget(request).calls,
  );
  app.addHook('onRequest', (request, reply, next) => {
    reply.header('x-request-id', request.id);
    // Within the protocols, admission does this, so that the response has limit headers.
    next(request.apiProtocol === undefined ? findHttpError(request) : undefined);
  });
  const isClosing = endConnectionsWhenClosing(app);
  answerErrorsWith(app, sendError);
  ignoreBodies(app);
  const probes: Probes = {
    readReadiness: createReadiness({ checkReadiness, limiter, isClosing, log }),
    readMetrics: () => metrics.registry.metrics(),
  };
  if (hasProbes) registerProbes(app, probes);
  registerApiCatalog(app, { definition, publicUrl, statusPath: hasProbes ? READY_PATH : undefined });
  await registerDocs(app, definition.root, () => options.buildDocument(publicUrl()));
  const exposedHeaders = listFieldNames(createHeaders(definition));
  const errors = createErrorTable(definition);
  await registerProtocols(app, {
    ...options,
    errors,
    operations,
    publicUrl,
    metrics,
    overload,
    exposedHeaders,
  });
  return { app, probes };
}

/** What the three protocols share. */
type SharedOptions = Omit<AppOptions, 'publicUrl' | 'overload'> &
  Omit<ProtocolOptions, 'protocol' | 'corsMethods'> &
  Pick<RestOptions, 'operations'>;

async function registerProtocols(app: FastifyInstance, options: SharedOptions): Promise<void> {
  const rest = async (scope: FastifyInstance) => {
    const corsMethods = options.operations.map(({ method }) => method);
    await registerAdmission(scope, { ...options, corsMethods, protocol: 'rest' });
    // An error that a client rehearses needs no input.
    readBodyAs(scope, (bytes, { admission }) =>
      bytes.length === 0 && admission.rehearsal !== undefined ? {} : parseJson(decodeBody(bytes)),
    );
    registerRest(scope, options);
    answerErrorsWith(scope, sendError);
  };
  const trpc = async (scope: FastifyInstance) => {
    await registerAdmission(scope, { ...options, corsMethods: ['GET', 'POST'], protocol: 'trpc' });
    readBodyAs(scope, decodeBody);
    registerRpc(scope, options);
    answerErrorsWith(scope, sendRpcError);
  };
  const mcp = async (scope: FastifyInstance) => {
    const corsMethods = ['POST'];
    await registerAdmission(scope, { ...options, corsMethods, protocol: 'mcp', refusesOrigins: true });
    registerMcp(scope, options);
    answerErrorsWith(scope, sendMcpError);
  };
  await app.register(rest, { prefix: REST_PREFIX });
  await app.register(trpc, { prefix: TRPC_PREFIX });
  await app.register(mcp, { prefix: MCP_PREFIX });
  await app.register((scope) => registerNoOAuth(scope, options));
}

/** What is answered where there is no request. */
const REFUSALS: Readonly<Record<RefusalReason, ApiError>> = {
  malformed: new ApiError('invalid_request', { message: 'The request is not well-formed HTTP/1.1.' }),
  header_too_large: new ApiError('invalid_request', {
    message: `The request line and headers are over ${maxHeaderSize / 1024} KiB.`,
  }),
  too_slow: new ApiError('invalid_request', { message: 'The request did not arrive in time.' }),
  unknown_method: new ApiError('not_implemented', { message: 'The service does not know this method.' }),
  connect: new ApiError('invalid_request', { message: 'CONNECT is not supported.' }),
};

/** Returns a function for the address that clients use, without a trailing slash. */
function createPublicUrl(app: FastifyInstance, host: string, publicUrl: string | undefined): () => string {
  let localUrl = '';
  app.addHook('onListen', async () => {
    localUrl = toLocalUrl(host, (app.server.address() as AddressInfo).port);
  });
  return () => publicUrl ?? localUrl;
}

/** Errors that a handler or a hook throws. Those of tRPC calls and of tools are part of a response: see rpc.ts, call-tool.ts. */
function answerErrorsWith(app: FastifyInstance, send: typeof sendRpcError): void {
  app.setErrorHandler((error, request, reply) => {
    // Fastify would close the connection behind a body that is too large. The rest of it is dropped instead, as after a
    // 401 or 415, so that clients which read only when they have sent everything get their answer.
    if (reply.hasHeader('connection'))
      reply.header('connection', reply.raw.shouldKeepAlive ? 'keep-alive' : 'close');
    return send(reportError(error, request, reply), reply);
  });
  const paths = new Set<string>();
  app.addHook('onRoute', ({ method, url }) => void ([method].flat().includes('GET') && paths.add(url)));
  app.setNotFoundHandler(({ url }) => {
    const [path = ''] = url.split('?', 1);
    if (!paths.has(path)) throw new ApiError('not_found', { message: NOTHING_HERE });
    // Within the protocols, routes of their own do this: see rest.ts and rpc.ts.
    throw new ApiError('method_not_allowed', { headers: { allow: 'GET, HEAD' } });
  });
}

function sendError({ status, body }: ApiError, reply: FastifyReply): FastifyReply {
  return sendJson(reply.code(status), JSON.stringify(body));
}

/** An assistant shows its model the body, and no header. */
function sendMcpError({ status, body, headers }: ApiError, reply: FastifyReply): FastifyReply {
  const retryAfter = headers['retry-after'];
  const wait = retryAfter === undefined ? {} : { retryAfterSeconds: Number(retryAfter) };
  return sendJson(reply.code(status), JSON.stringify({ ...body, ...wait }));
}

/** Once the server is closing, ends each connection with its next response. Returns whether it is closing. */
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

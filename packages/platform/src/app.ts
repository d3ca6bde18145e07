import type { Limiter } from '@animal-store/limits';
import type { AnyTRPCRouter } from '@trpc/server';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { type AdmissionParts, readTarget, registerAdmission } from './admission/admission.js';
import { registerNoOAuth } from './admission/no-oauth.js';
import { findHttpError } from './admission/request-checks.js';
import { MCP_PREFIX, REST_PREFIX, TRPC_PREFIX } from './contract/protocol.js';
import type { Definition } from './definition/definition.js';
import { registerApiCatalog } from './docs/api-catalog.js';
import { createHeaders, listFieldNames } from './docs/response-headers.js';
import { registerDocs } from './docs/routes.js';
import { createErrorTable } from './errors/error-table.js';
import type { Authenticator } from './keys/authenticator.js';
import { createKeySearch, type KeySearch, testPrefix } from './keys/format.js';
import { createMetrics, type Metrics, type MetricsOptions } from './monitoring/metrics.js';
import { type Probes, READY_PATH, registerProbes } from './monitoring/probes.js';
import type { Readiness } from './monitoring/readiness.js';
import { reportRequests } from './monitoring/request-log.js';
import type { Operation } from './operations/list-operations.js';
import type { Config } from './process/config.js';
import { decodeBody, ignoreBodies, parseJson, readBodyAs } from './protocols/body.js';
import type { CreateContext } from './protocols/context.js';
import { answerErrorsWith, sendError, sendMcpError } from './protocols/error-handler.js';
import { registerMcp } from './protocols/mcp/mcp.js';
import { registerRest } from './protocols/rest.js';
import { sendRpcError } from './protocols/rpc-stream.js';
import { registerRpc } from './protocols/trpc.js';
import { openServer, type Server, type ServerOptions } from './server.js';

/** What the service has built before it has a server. */
export interface AppParts {
  readonly definition: Definition;
  readonly config: ServerOptions['config'] &
    Pick<Config, 'keyPrefix' | 'limitsPer' | 'anonymousPerMinute' | 'corsOrigins'>;
  readonly log: FastifyBaseLogger;
  /** The clock, in Unix milliseconds */
  readonly now: () => number;
  readonly router: AnyTRPCRouter;
  readonly operations: readonly Operation[];
  readonly createContext: CreateContext;
  readonly authenticator: Authenticator;
  readonly limiter: Limiter;
  readonly bans: AdmissionParts['bans'];
  readonly usage: AdmissionParts['usage'] & MetricsOptions['usage'];
  readonly readiness: Readiness;
  readonly durations: MetricsOptions['durations'];
  readonly counters: MetricsOptions['counters'];
  readonly countConnections: MetricsOptions['countConnections'];
  readonly countKeys: MetricsOptions['countKeys'];
  /** Builds the OpenAPI document */
  readonly buildDocument: (publicUrl: string) => Promise<object>;
  /** Override individual defaults of the server */
  readonly connections?: ServerOptions['connections'];
  readonly overload?: ServerOptions['overload'];
}

/** Opens the server, and gives it its routes and what operators poll. */
export async function buildApp(parts: AppParts) {
  const { definition, config, authenticator, limiter, bans, usage, now } = parts;
  const { keyPrefix, limitsPer, anonymousPerMinute } = config;
  const { mayHaveKey, redactKeys } = createKeySearch(definition.identity.keyPrefix);
  const server = openServer({ ...parts, mayHaveKey });
  const { app, overload, publicUrl } = server;
  const metrics = createMetrics({ ...parts, server: app.server, overload });
  const admission: AdmissionParts = {
    definition,
    authenticator,
    errors: createErrorTable(definition),
    limiter,
    limitsPer,
    anonymousPerMinute,
    bans,
    overload,
    usage,
    metrics,
    publicUrl,
    canRehearse: keyPrefix === testPrefix(definition.identity.keyPrefix),
    now,
  };
  const probes = await addRoutes({ ...parts, server, admission, metrics, redactKeys });
  return { app, probes };
}

/** What the routes need: the server, and what could not be built before there was one. */
interface RouteParts extends AppParts {
  readonly server: Server;
  readonly admission: AdmissionParts;
  readonly metrics: Metrics;
  readonly redactKeys: KeySearch['redactKeys'];
}

/** Gives the server its routes: a list of everything that happens to a request. */
async function addRoutes(parts: RouteParts): Promise<Probes> {
  const { definition, config, server, operations, metrics, readiness, redactKeys, buildDocument } = parts;
  const { app, publicUrl, isClosing } = server;
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
  answerErrorsWith(app, sendError);
  ignoreBodies(app);
  const probes: Probes = {
    // A process that is shutting down finishes its requests, but is not ready.
    readReadiness: async () => (isClosing() ? { status: 'draining' } : readiness.report()),
    readMetrics: () => metrics.registry.metrics(),
  };
  // If METRICS_PORT is set, another server has them.
  const hasProbes = config.metricsPort === undefined;
  if (hasProbes) registerProbes(app, probes);
  registerApiCatalog(app, { definition, publicUrl, statusPath: hasProbes ? READY_PATH : undefined });
  await registerDocs(app, definition.root, () => buildDocument(publicUrl()));
  await registerProtocols(app, parts);
  return probes;
}

async function registerProtocols(app: FastifyInstance, parts: RouteParts): Promise<void> {
  const { definition, config, operations, router, createContext, admission } = parts;
  const shared = { definition, operations, router, createContext, publicUrl: parts.server.publicUrl };
  const cors = { corsOrigins: config.corsOrigins, exposedHeaders: listFieldNames(createHeaders(definition)) };
  const rest = async (scope: FastifyInstance) => {
    const corsMethods = operations.map(({ method }) => method);
    await registerAdmission(scope, { ...admission, ...cors, corsMethods, protocol: 'rest' });
    // An error that a client rehearses needs no input.
    readBodyAs(scope, (bytes, { admission: { rehearsal } }) =>
      bytes.length === 0 && rehearsal !== undefined ? {} : parseJson(decodeBody(bytes)),
    );
    registerRest(scope, shared);
    answerErrorsWith(scope, sendError);
  };
  const trpc = async (scope: FastifyInstance) => {
    const corsMethods = ['GET', 'POST'];
    await registerAdmission(scope, { ...admission, ...cors, corsMethods, protocol: 'trpc' });
    readBodyAs(scope, decodeBody);
    registerRpc(scope, shared);
    answerErrorsWith(scope, sendRpcError);
  };
  const mcp = async (scope: FastifyInstance) => {
    const own = { corsMethods: ['POST'], protocol: 'mcp', refusesOrigins: true } as const;
    await registerAdmission(scope, { ...admission, ...cors, ...own });
    registerMcp(scope, shared);
    answerErrorsWith(scope, sendMcpError);
  };
  await app.register(rest, { prefix: REST_PREFIX });
  await app.register(trpc, { prefix: TRPC_PREFIX });
  await app.register(mcp, { prefix: MCP_PREFIX });
  await app.register((scope) => registerNoOAuth(scope, cors));
}

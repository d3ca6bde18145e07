import cors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ApiError } from '../errors.js';

/** In the order of the header. HEAD goes with GET. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** The response headers that scripts of a configured origin may read. */
const EXPOSED_HEADERS = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit-Policy',
  'RateLimit',
  'Retry-After',
  'Link',
  'Location',
  'Deprecation',
  'Sunset',
  'Idempotency-Replayed',
  'X-Request-Id',
];
/** How long a browser may cache a preflight. No browser caches one for more than two hours. */
const MAX_AGE_SECONDS = 7_200;

export interface CorsOptions {
  /** Origins whose scripts may call the service. */
  readonly corsOrigins: readonly string[];
  /** Methods of the operations behind this protocol. */
  readonly corsMethods: readonly string[];
}

/**
 * Lets scripts of the configured origins call the service (https://fetch.spec.whatwg.org/#http-cors-protocol). A
 * preflight is handled here and needs no key. Other requests continue, with the headers that let the script read the
 * response.
 */
export async function registerCors(
  app: FastifyInstance,
  { corsOrigins: origins, corsMethods }: CorsOptions,
): Promise<void> {
  if (origins.length === 0) return;
  const methods = METHODS.filter((method) => corsMethods.includes(method === 'HEAD' ? 'GET' : method));
  // The plugin adds a route for preflights, which must not make other OPTIONS requests succeed.
  app.addHook('onRoute', (route) => {
    const isPluginRoute = route.method === 'OPTIONS' && route.url.endsWith('*');
    if (isPluginRoute) route.config = { ...route.config, routeError: () => new ApiError('not_found') };
  });
  await app.register(cors, {
    delegator: async (request: FastifyRequest): Promise<FastifyCorsOptions> => {
      const { origin } = request.headers;
      if (origin === undefined || !origins.includes(origin)) return { origin: false };
      const { admissionError } = request;
      const isUnknown = admissionError instanceof ApiError && admissionError.code === 'not_found';
      const preflight = request.headers['access-control-request-method'] !== undefined && !isUnknown;
      return {
        origin,
        preflight,
        methods,
        exposedHeaders: EXPOSED_HEADERS,
        maxAge: MAX_AGE_SECONDS,
      };
    },
  });
}

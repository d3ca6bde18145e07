import cors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ApiError } from '../errors.js';

const METHODS = ['GET', 'HEAD', 'POST'];
/** What a script of a configured origin may read beside the body. */
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
/** How long a browser may remember a preflight, in seconds; two hours is the most that any keeps. */
const MAX_AGE_SECONDS = 7_200;

/**
 * Lets scripts of the configured origins call (https://fetch.spec.whatwg.org/#http-cors-protocol). Their preflight is
 * answered here, without a key; every other request goes on, with the headers that let the script read its answer.
 */
export async function registerCors(app: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return;
  // The plugin's own route for preflights is no route of the service's.
  app.addHook('onRoute', (route) => {
    const isPluginRoute = route.method === 'OPTIONS' && route.url.endsWith('*');
    if (isPluginRoute)
      route.config = {
        ...route.config,
        routeError: () => new ApiError('not_found', 'There is no such route.'),
      };
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
        methods: METHODS,
        exposedHeaders: EXPOSED_HEADERS,
        maxAge: MAX_AGE_SECONDS,
      };
    },
  });
}

import cors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { ApiError } from '../errors/api-error.js';

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
  'Preference-Applied',
  'X-API-Key-Expires',
  'WWW-Authenticate',
  'X-Request-Id',
];
/** How long a browser may cache a preflight. No browser caches one for more than two hours. */
const MAX_AGE_SECONDS = 7_200;

/** How many rejected origins are logged: whoever makes up origins must not be able to fill the log. */
const MAX_LOGGED_ORIGINS = 100;

export interface OriginOptions {
  /** `localhost` stands for every origin on localhost */
  readonly corsOrigins: readonly string[] | 'localhost';
  readonly log: Pick<FastifyBaseLogger, 'warn'>;
}

/** The origins whose scripts may call the service. */
export interface OriginPolicy {
  /** Whether there is any */
  readonly allowsSome: boolean;
  /** Whether the request comes from one. Logs each other origin once. */
  readonly allows: (request: FastifyRequest) => boolean;
}

export function createOriginPolicy({ corsOrigins, log }: OriginOptions): OriginPolicy {
  const isAllowed =
    corsOrigins === 'localhost' ? isOnLocalhost : (origin: string) => corsOrigins.includes(origin);
  const rejected = new Set<string>();
  return {
    allowsSome: corsOrigins.length > 0,
    allows(request) {
      const { origin } = request.headers;
      if (origin === undefined) return false;
      if (isAllowed(origin)) return true;
      if (rejected.size < MAX_LOGGED_ORIGINS && !rejected.has(origin) && !isSameOrigin(request, origin)) {
        rejected.add(origin);
        log.warn({ origin }, 'pages of this origin may not call the service: CORS_ORIGINS does not allow it');
      }
      return false;
    },
  };
}

/** Whether the origin is on this machine, whatever its port. RFC 6761 reserves `localhost` with all its subdomains. */
function isOnLocalhost(origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { origin: normalized, protocol, hostname } = new URL(origin);
  if (normalized !== origin || !['http:', 'https:'].includes(protocol)) return false;
  return ['localhost', '127.0.0.1', '[::1]'].includes(hostname) || hostname.endsWith('.localhost');
}

/** The reference page calls its own origin. Older browsers, and plain http, have no Sec-Fetch-Site. */
function isSameOrigin({ headers, host }: FastifyRequest, origin: string): boolean {
  return headers['sec-fetch-site'] === 'same-origin' || origin.endsWith(`://${host}`);
}

export interface CorsOptions {
  readonly origins: OriginPolicy;
  /** Methods of the operations behind this protocol. */
  readonly corsMethods: readonly string[];
}

/**
 * Lets scripts of the allowed origins call the service (https://fetch.spec.whatwg.org/#http-cors-protocol). A
 * preflight is handled here and needs no key. Other requests continue, with the headers that let the script read the
 * response.
 */
export async function registerCors(
  app: FastifyInstance,
  { origins, corsMethods }: CorsOptions,
): Promise<void> {
  if (!origins.allowsSome) {
    app.addHook('onRequest', (request, _reply, next) => {
      origins.allows(request);
      next();
    });
    return;
  }
  const methods = METHODS.filter((method) => corsMethods.includes(method === 'HEAD' ? 'GET' : method));
  // The plugin adds a route for preflights, which must not make other OPTIONS requests succeed.
  app.addHook('onRoute', (route) => {
    const isPluginRoute = route.method === 'OPTIONS' && route.url.endsWith('*');
    if (isPluginRoute) route.config = { ...route.config, routeError: () => new ApiError('not_found') };
  });
  await app.register(cors, {
    delegator: async (request: FastifyRequest): Promise<FastifyCorsOptions> => {
      if (!origins.allows(request)) return { origin: false };
      const { admissionError, headers } = request;
      const isUnknown = admissionError instanceof ApiError && admissionError.code === 'not_found';
      const preflight = headers['access-control-request-method'] !== undefined && !isUnknown;
      return {
        origin: headers.origin as string,
        preflight,
        methods,
        exposedHeaders: EXPOSED_HEADERS,
        maxAge: MAX_AGE_SECONDS,
      };
    },
  });
}

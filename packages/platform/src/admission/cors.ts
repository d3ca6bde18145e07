import cors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ApiError } from '../errors/api-error.js';

/** How long a browser may cache a preflight. Chromium caches none for longer. */
const MAX_AGE_SECONDS = 7_200;

/** The origins on this machine, whatever their port. RFC 6761 reserves `localhost` with all its subdomains. */
const LOCALHOST = /^https?:\/\/(?:(?:[\w-]+\.)*localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/;

export interface CorsOptions {
  /** The origins whose scripts may call the service; `localhost` stands for every origin on localhost */
  readonly corsOrigins: readonly string[] | 'localhost';
  /** Methods of the operations behind this protocol. */
  readonly corsMethods: readonly string[];
  /** The response headers that scripts may read */
  readonly exposedHeaders: string[];
}

/**
 * Lets scripts of the allowed origins call the service (https://fetch.spec.whatwg.org/#http-cors-protocol). A
 * preflight is handled here and needs no key. Other requests continue, with the headers that let the script read the
 * response.
 */
export async function registerCors(
  app: FastifyInstance,
  { corsOrigins, corsMethods, exposedHeaders }: CorsOptions,
): Promise<void> {
  if (corsOrigins.length === 0) return;
  const methods = [...new Set(corsMethods.flatMap((each) => (each === 'GET' ? ['GET', 'HEAD'] : each)))];
  const options = { methods, exposedHeaders, maxAge: MAX_AGE_SECONDS };
  // With a list of origins as its option, the plugin would answer every preflight with a 204, even of other origins and
  // unknown paths.
  const delegator = async (request: FastifyRequest): Promise<FastifyCorsOptions> => {
    const { admission, headers, routeOptions } = request;
    const { origin } = headers;
    // Without a prefix, the plugin's own route matches every other path, too.
    const isElsewhere = routeOptions.url === '*';
    if (origin === undefined || isElsewhere || !isAllowed(corsOrigins, origin)) return { origin: false };
    const error = admission?.error;
    const isUnknown = error instanceof ApiError && error.code === 'not_found';
    const preflight = isPreflight(request, { corsOrigins }) && !isUnknown;
    return { ...options, origin, preflight };
  };
  await app.register(cors, { delegator });
}

/** Why a request is refused for its Origin, by protocols that do not leave this to the browser. */
export function findOriginError(
  { headers: { origin } }: FastifyRequest,
  { corsOrigins }: Pick<CorsOptions, 'corsOrigins'>,
): ApiError | undefined {
  if (origin === undefined || isAllowed(corsOrigins, origin)) return undefined;
  return new ApiError('origin_not_allowed');
}

/**
 * Whether the request is a preflight of an allowed origin, which costs nothing. A preflight names a method; the plugin
 * would refuse an empty name in words of its own.
 */
export function isPreflight(
  { method, headers }: FastifyRequest,
  { corsOrigins }: Pick<CorsOptions, 'corsOrigins'>,
): boolean {
  const { origin } = headers;
  const asks = method === 'OPTIONS' && Boolean(headers['access-control-request-method']);
  return asks && origin !== undefined && isAllowed(corsOrigins, origin);
}

function isAllowed(corsOrigins: CorsOptions['corsOrigins'], origin: string): boolean {
  return corsOrigins === 'localhost' ? LOCALHOST.test(origin) : corsOrigins.includes(origin);
}

import cors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { ApiError } from '../errors/api-error.js';

/** How long a browser may cache a preflight. No browser caches one for more than two hours. */
const MAX_AGE_SECONDS = 7_200;

/** How many rejected origins are logged: whoever makes up origins must not be able to fill the log. */
const MAX_LOGGED_ORIGINS = 100;

/** The origins on this machine, whatever their port. RFC 6761 reserves `localhost` with all its subdomains. */
const LOCALHOST = /^https?:\/\/(?:(?:[\w-]+\.)*localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/;

export interface OriginOptions {
  /** `localhost` stands for every origin on localhost */
  readonly corsOrigins: readonly string[] | 'localhost';
  readonly log: Pick<FastifyBaseLogger, 'warn'>;
}

type OriginCheck = (request: FastifyRequest) => boolean;

/** Returns whether a request comes from an origin whose scripts may call the service. Logs each other origin once. */
export function createOriginCheck({ corsOrigins, log }: OriginOptions): OriginCheck {
  const rejected = new Set<string>();
  return (request) => {
    const { origin } = request.headers;
    if (origin === undefined) return false;
    if (corsOrigins === 'localhost' ? LOCALHOST.test(origin) : corsOrigins.includes(origin)) return true;
    if (rejected.size < MAX_LOGGED_ORIGINS && !rejected.has(origin) && !isSameOrigin(request, origin)) {
      rejected.add(origin);
      log.warn({ origin }, 'pages of this origin may not call the service: CORS_ORIGINS does not allow it');
    }
    return false;
  };
}

/** The reference page calls its own origin. Older browsers, and plain http, have no Sec-Fetch-Site. */
function isSameOrigin({ headers, host }: FastifyRequest, origin: string): boolean {
  return headers['sec-fetch-site'] === 'same-origin' || origin.endsWith(`://${host}`);
}

export interface CorsOptions extends Pick<OriginOptions, 'corsOrigins'> {
  readonly isAllowedOrigin: OriginCheck;
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
  { corsOrigins, isAllowedOrigin, corsMethods, exposedHeaders }: CorsOptions,
): Promise<void> {
  const methods = [...new Set(corsMethods.flatMap((each) => (each === 'GET' ? ['GET', 'HEAD'] : each)))];
  const options = { methods, exposedHeaders, maxAge: MAX_AGE_SECONDS };
  const delegator = async (request: FastifyRequest): Promise<FastifyCorsOptions> => {
    if (!isAllowedOrigin(request)) return { origin: false };
    const { admissionError, headers } = request;
    const isUnknown = admissionError instanceof ApiError && admissionError.code === 'not_found';
    const preflight = headers['access-control-request-method'] !== undefined && !isUnknown;
    return { ...options, origin: headers.origin as string, preflight };
  };
  if (corsOrigins.length > 0) await app.register(cors, { delegator });
  // Only to log them
  else app.addHook('onRequest', async (request) => void isAllowedOrigin(request));
}

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ApiError } from '../errors.js';
import type { Authenticator } from '../keys/authenticator.js';
import type { ApiKey } from '../keys/store.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Name of the operation, for the log */
    operation?: string | ((request: FastifyRequest) => string);
    /** How many requests this one counts as; 1 when left out */
    cost?: (request: FastifyRequest) => number;
    /** What is wrong with the route itself: 404 or 405 */
    routeFault?: (request: FastifyRequest) => ApiError | undefined;
  }
  interface FastifyRequest {
    apiKey: ApiKey | null;
  }
}

/**
 * What stands before both faces, in the order of the contract: the route (404, 405), then the key, then the limit, then
 * what can be said of the input before it is read. Neither face is entered, and no body is read, before all agree.
 */
export function guardFace(app: FastifyInstance, { authenticator }: { authenticator: Authenticator }): void {
  app.decorateRequest('apiKey', null);
  app.addHook('onRequest', async (request) => {
    const routeFault = findRouteFault(request);
    const keyFault = await authenticate(request, authenticator);
    const fault = routeFault ?? keyFault ?? findMediaTypeFault(request);
    if (fault !== undefined) throw fault;
  });
}

function findRouteFault(request: FastifyRequest): ApiError | undefined {
  if (request.is404) return new ApiError('not_found', 'There is no such route.');
  return request.routeOptions.config.routeFault?.(request);
}

/** Puts the valid key on the request, or returns why there is none. */
async function authenticate(request: FastifyRequest, authenticator: Authenticator): Promise<unknown> {
  try {
    request.apiKey = await authenticator.authenticate(request.headers.authorization);
    return undefined;
  } catch (fault) {
    return fault;
  }
}

/** Media types are compared without parameters and without regard to case (RFC 9110, section 8.3.1). */
function findMediaTypeFault({ method, headers }: FastifyRequest): ApiError | undefined {
  if (method !== 'POST') return undefined;
  if (headers['content-encoding'] !== undefined) {
    return new ApiError('unsupported_media_type', 'The body must be sent without a Content-Encoding.');
  }
  const mediaType = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType === 'application/json') return undefined;
  return new ApiError('unsupported_media_type', 'The body must be application/json.');
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ApiError } from '../errors/api-error.js';
import { identify } from '../monitoring/request-log.js';
import { toApiError } from '../operations/error-mapping.js';

/**
 * Returns the error that the client gets, and adds its headers. The cause goes to the log, where the request id finds it.
 *
 * @param path the name of the procedure, if the route does not have it
 */
export function reportError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  path?: string,
): ApiError {
  const apiError = toApiError(error);
  request.report.errorCode ??= apiError.code;
  const { status, cause } = apiError;
  // Rehearsed errors and overload have no cause. An outage affects many requests at once, so each has one line.
  if (status === 503 && cause instanceof Error) request.report.errorReason ??= cause.message;
  else if (status >= 500 && cause !== undefined)
    request.log.error({ ...identify(request), err: cause, path }, apiError.message);
  reply.headers(apiError.headers);
  return apiError;
}

/**
 * Sends text that is already JSON. With a serializer, Fastify adds no charset, which application/json does not define.
 * A string is sent in one write with the head of the response; bytes would need a second write.
 */
export function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('application/json').serializer(String).send(text);
}

import { TRPCError } from '@trpc/server';
import { ZodError } from 'zod';
import { DatabaseOutage } from '../database/outage.js';
import { ApiError, type FieldErrors } from '../errors/api-error.js';

/**
 * Decides what a client learns about a failure, from whichever layer it comes. Anything unexpected becomes
 * `internal_error`, with the original as `cause` for the log.
 */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof TRPCError) return fromTrpcError(error);
  if (error instanceof DatabaseOutage) {
    const { cause, isTimeout } = error;
    const message = isTimeout ? 'The database did not answer in time. Try again shortly.' : undefined;
    return new ApiError('service_unavailable', { cause, ...(message && { message }) });
  }
  return fromHttpStatus(error);
}

/** tRPC wraps whatever a procedure throws as `cause`. Its own errors have no cause, or a parser's error. */
function fromTrpcError(error: TRPCError): ApiError {
  if (error.cause instanceof ZodError) return fromZodError(error.cause);
  switch (error.code) {
    case 'PARSE_ERROR':
    case 'BAD_REQUEST':
      return fromMalformedCall(error);
    case 'NOT_FOUND':
      return new ApiError('not_found', { cause: error });
    case 'METHOD_NOT_SUPPORTED':
      return new ApiError('method_not_allowed', { cause: error });
    case 'UNSUPPORTED_MEDIA_TYPE':
      return new ApiError('unsupported_media_type', { cause: error });
    default:
      return toApiError(error.cause);
  }
}

function fromMalformedCall(error: TRPCError): ApiError {
  const message =
    error.cause instanceof SyntaxError
      ? 'The input is not valid JSON.'
      : 'This is not a valid tRPC call: check the input, and that a batch has either queries or mutations.';
  return new ApiError('invalid_request', { message, cause: error });
}

/** Names each offending field: "name is required; limit must be an integer from 1 to 100." */
function fromZodError(error: ZodError): ApiError {
  const problems = error.issues.map(({ path, message }) =>
    [path.join('.'), message].filter(Boolean).join(' '),
  );
  const message = `${[...new Set(problems)].join('; ')}.`;
  return new ApiError('invalid_request', { message, fields: listFields(error), cause: error });
}

/** The first problem of each field. Undefined if the input as a whole is invalid. */
function listFields({ issues }: ZodError): FieldErrors | undefined {
  const fields = new Map<string, string>();
  for (const { path, message } of issues) {
    const name = path.join('.');
    if (name !== '' && !fields.has(name)) fields.set(name, message);
  }
  return fields.size === 0 ? undefined : Object.fromEntries(fields);
}

/** Fastify's errors carry an HTTP status. */
function fromHttpStatus(error: unknown): ApiError {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  if (status === 404) return new ApiError('not_found', { cause: error });
  if (status === 413) return new ApiError('payload_too_large', { cause: error });
  if (status === 415) return new ApiError('unsupported_media_type', { cause: error });
  if (status >= 400 && status < 500) return new ApiError('invalid_request', { cause: error });
  return new ApiError('internal_error', { cause: error });
}

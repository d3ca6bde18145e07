import { TRPCError } from '@trpc/server';
import { ZodError } from 'zod';
import { DatabaseOutage } from '../connections/outage.js';
import type { PlatformErrorCode } from '../definition/definition.js';
import { ApiError } from '../errors/api-error.js';

/**
 * The error that a client gets for a failure in any layer. An unexpected one is `internal_error`, with its `cause` for the
 * log.
 */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof TRPCError) return fromTrpcError(error);
  if (error instanceof DatabaseOutage) return new ApiError('service_unavailable', { cause: error });
  return fromHttpStatus(error);
}

/**
 * Whether the error is about an input. tRPC also wraps zod errors of handlers and of outputs, which no client may see.
 * Only the code differs.
 */
export function isInputError(error: unknown): error is TRPCError & { readonly cause: ZodError } {
  return error instanceof TRPCError && error.code === 'BAD_REQUEST' && error.cause instanceof ZodError;
}

/** tRPC wraps whatever a procedure throws as `cause`. Errors that tRPC creates have no cause, or a parser's error. */
function fromTrpcError(error: TRPCError): ApiError {
  if (isInputError(error)) return fromZodError(error.cause);
  const { code, cause } = error;
  if (code === 'NOT_FOUND') return new ApiError('not_found', { cause: error });
  if (code === 'METHOD_NOT_SUPPORTED') return new ApiError('method_not_allowed', { cause: error });
  if (code !== 'PARSE_ERROR' && code !== 'BAD_REQUEST') {
    // Keep tRPC's error for the log: it says that a ZodError is about the output. A middleware's error may have no cause.
    const isOwn = cause === undefined || cause instanceof ZodError;
    return isOwn ? new ApiError('internal_error', { cause: describeMistake(error) }) : toApiError(cause);
  }
  const message =
    cause instanceof SyntaxError
      ? 'The input is not valid JSON.'
      : 'This is not a valid tRPC call: check the input, and that a batch has either queries or mutations.';
  return new ApiError('invalid_request', { message, cause: error });
}

/** Tells the author of a handler what its error lacks: clients do not learn tRPC's codes, and tRPC's runner drops a null. */
function describeMistake(error: TRPCError): Error {
  const { code, message } = error;
  if (code !== 'INTERNAL_SERVER_ERROR')
    return new TypeError(`For what clients should know, throw new ApiError(…), not TRPCError ${code}`, {
      cause: error,
    });
  return message === code
    ? new TypeError('A handler or a .use() threw null, undefined, or a TRPCError without a message', {
        cause: error,
      })
    : error;
}

/** Names each offending field: "name is required; limit must be an integer from 1 to 100." */
function fromZodError(error: ZodError): ApiError {
  const problems = new Set<string>();
  // Keeps the first problem of each field.
  const fields = new Map<string, string>();
  for (const { path, message } of error.issues) {
    const name = path.join('.');
    problems.add(name === '' ? message : `${name} ${message}`);
    if (name !== '' && !fields.has(name)) fields.set(name, message);
  }
  return new ApiError('invalid_request', {
    message: `${[...problems].join('; ')}.`,
    // Empty if the input as a whole is invalid.
    fields: fields.size === 0 ? undefined : Object.fromEntries(fields),
    cause: error,
  });
}

const CODES_BY_STATUS: Readonly<Record<number, PlatformErrorCode>> = {
  404: 'not_found',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
};

/** Fastify's errors carry an HTTP status. */
function fromHttpStatus(error: unknown): ApiError {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  const otherCode = status >= 400 && status < 500 ? 'invalid_request' : 'internal_error';
  return new ApiError(CODES_BY_STATUS[status] ?? otherCode, { cause: error });
}

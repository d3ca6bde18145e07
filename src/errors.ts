import { TRPCError } from '@trpc/server';
import type { TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODE_NUMBER } from '@trpc/server/rpc';
import { ZodError } from 'zod';
import { isDatabaseOutage } from './database/outage.js';

/** Every error code of the service, with its HTTP status and the nearest of tRPC's own codes. */
export const errorTable = {
  invalid_request: { status: 400, trpcCode: 'BAD_REQUEST' },
  missing_api_key: { status: 401, trpcCode: 'UNAUTHORIZED' },
  invalid_api_key: { status: 401, trpcCode: 'UNAUTHORIZED' },
  not_found: { status: 404, trpcCode: 'NOT_FOUND' },
  method_not_allowed: { status: 405, trpcCode: 'METHOD_NOT_SUPPORTED' },
  idempotency_key_in_use: { status: 409, trpcCode: 'CONFLICT' },
  operation_removed: { status: 410, trpcCode: 'NOT_FOUND' },
  payload_too_large: { status: 413, trpcCode: 'PAYLOAD_TOO_LARGE' },
  unsupported_media_type: { status: 415, trpcCode: 'UNSUPPORTED_MEDIA_TYPE' },
  idempotency_key_reused: { status: 422, trpcCode: 'UNPROCESSABLE_CONTENT' },
  rate_limit_exceeded: { status: 429, trpcCode: 'TOO_MANY_REQUESTS' },
  api_key_banned: { status: 429, trpcCode: 'TOO_MANY_REQUESTS' },
  internal_error: { status: 500, trpcCode: 'INTERNAL_SERVER_ERROR' },
  service_unavailable: { status: 503, trpcCode: 'SERVICE_UNAVAILABLE' },
} as const;

export type ErrorCode = keyof typeof errorTable;

/** The body of every error: exactly these three members. */
export interface ErrorBody {
  code: ErrorCode;
  message: string;
  status: number;
}

/** tRPC's error shape, with the Error object of the REST face under `data.error`. */
export interface ErrorShape {
  message: string;
  code: TRPC_ERROR_CODE_NUMBER;
  data: { code: TRPC_ERROR_CODE_KEY; httpStatus: number; path?: string; error: ErrorBody };
}

/**
 * A failure that the client is told of: its message is written for the client and holds nothing of the inside. It has no
 * stack, which would take longer than the rest of a refusal; that of a fault of ours is its cause's.
 *
 * @internal
 */
export class ApiError extends Error {
  readonly code: ErrorCode;
  /** Response headers that belong to this error, for example Allow or Retry-After. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode,
    message: string,
    options: { headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ApiError';
    this.code = code;
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return errorTable[this.code].status;
  }

  get body(): ErrorBody {
    return { code: this.code, message: this.message, status: this.status };
  }
}

/** Seconds after which a client may try again when the database could not be reached. */
const OUTAGE_RETRY_SECONDS = 1;

/**
 * The one place that decides what a client learns of a failure, from any layer. What is not known here is a fault of
 * ours: `internal_error`, with the original as `cause` for the log.
 *
 * @internal
 */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof TRPCError) return fromTrpcError(error);
  if (!isRequestFault(error) && isDatabaseOutage(error)) {
    return new ApiError('service_unavailable', 'The service cannot reach its database. Try again shortly.', {
      headers: { 'retry-after': String(OUTAGE_RETRY_SECONDS) },
      cause: error,
    });
  }
  return fromHttpStatus(error);
}

/** tRPC wraps whatever a procedure throws; what it raises itself has no cause or a parser's. */
function fromTrpcError(error: TRPCError): ApiError {
  if (error.cause instanceof ZodError) return fromZodError(error.cause);
  switch (error.code) {
    case 'PARSE_ERROR':
    case 'BAD_REQUEST':
      return fromBadCall(error);
    case 'NOT_FOUND':
      return new ApiError('not_found', 'There is no such procedure.', { cause: error });
    case 'METHOD_NOT_SUPPORTED':
      return new ApiError('method_not_allowed', 'Queries are called with GET, mutations with POST.', {
        cause: error,
      });
    case 'UNSUPPORTED_MEDIA_TYPE':
      return new ApiError('unsupported_media_type', 'The body must be application/json.', { cause: error });
    default:
      return toApiError(error.cause);
  }
}

function fromBadCall(error: TRPCError): ApiError {
  const message =
    error.cause instanceof SyntaxError
      ? 'The input is not valid JSON.'
      : 'The call is not one that tRPC understands: check the input, and that a batch holds one type of procedure.';
  return new ApiError('invalid_request', message, { cause: error });
}

function fromZodError(error: ZodError): ApiError {
  const sentences = error.issues.map(({ path, message }) =>
    [path.join('.'), message].filter(Boolean).join(' '),
  );
  return new ApiError('invalid_request', `${[...new Set(sentences)].join('; ')}.`, { cause: error });
}

/** Such as a socket that the client closed: not the database's, whatever its code. */
function isRequestFault(error: unknown): boolean {
  const status = readHttpStatus(error);
  return status >= 400 && status < 500;
}

/** Fastify's errors carry the status that HTTP gives them. */
function readHttpStatus(error: unknown): number {
  return error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
}

function fromHttpStatus(error: unknown): ApiError {
  const status = readHttpStatus(error);
  if (status === 404) return new ApiError('not_found', 'There is no such route.', { cause: error });
  if (status === 413) return new ApiError('payload_too_large', 'The body is over 64 KiB.', { cause: error });
  if (status === 415) {
    return new ApiError('unsupported_media_type', 'The body must be application/json.', { cause: error });
  }
  if (status >= 400 && status < 500) {
    return new ApiError('invalid_request', 'The request is not well-formed HTTP.', { cause: error });
  }
  return new ApiError(
    'internal_error',
    'Something went wrong on our side. Name the X-Request-Id when you report it.',
    {
      cause: error,
    },
  );
}

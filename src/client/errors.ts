import { TRPCClientError } from '@trpc/client';
import type { ErrorBody, ErrorCode } from '../errors.js';
import type { AppRouter } from '../router.js';

/** The service's answer to a call that failed. Everything else that a call rejects with is no answer of the service. */
export class ApiClientError extends TRPCClientError<AppRouter> {
  readonly code: ErrorCode;
  /** The HTTP status */
  readonly status: number;
  /** Whole seconds after which the call may be sent again; the service says so with a 429 and a 503. */
  readonly retryAfterSeconds?: number;

  constructor(
    { code, message, status }: ErrorBody,
    error: TRPCClientError<AppRouter>,
    retryAfterSeconds?: number,
  ) {
    super(message, {
      result: error.shape ? { error: error.shape } : null,
      ...(error.meta === undefined ? {} : { meta: error.meta }),
      cause: error,
    });
    // The class above sets its own prototype.
    Object.setPrototypeOf(this, ApiClientError.prototype);
    this.name = 'ApiClientError';
    this.code = code;
    this.status = status;
    if (retryAfterSeconds !== undefined) this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Whether a call failed with an answer of the service, which `code` then names. */
export function isApiError(error: unknown): error is ApiClientError {
  return error instanceof ApiClientError;
}

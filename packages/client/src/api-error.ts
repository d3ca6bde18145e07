import { TRPCClientError } from '@trpc/client';
import type { ErrorBody, ErrorCode } from '../../../src/errors.js';
import type { AppRouter } from '../../../src/router.js';

/** What tRPC's links fail with */
export type Failure = TRPCClientError<AppRouter>;

/** A call that the service has answered with an error. */
export class ApiClientError extends TRPCClientError<AppRouter> {
  readonly code: ErrorCode;
  /** The HTTP status */
  readonly status: number;
  /** Whole seconds after which the call may be sent again: with a 429 and a 503 */
  readonly retryAfterSeconds: number | undefined;
  /** The X-Request-Id of the answer, which finds the call in the service's log */
  readonly requestId: string | undefined;

  constructor(error: Failure, { code, status }: ErrorBody, retryAfterSeconds?: number) {
    super(error.message, {
      result: error.shape ? { error: error.shape } : null,
      ...(error.meta === undefined ? {} : { meta: error.meta }),
    });
    // The constructor above has made it an instance of its own class only.
    Object.setPrototypeOf(this, ApiClientError.prototype);
    this.name = 'ApiClientError';
    this.code = code;
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
    this.requestId = readResponse(error)?.headers.get('x-request-id') ?? undefined;
  }
}

/**
 * Whether a call failed with an answer of the service, which `code` then names. Otherwise the service was not reached,
 * something between answered in its place, or the call was aborted.
 */
export function isApiError(error: unknown): error is ApiClientError {
  return error instanceof ApiClientError;
}

/** What the caller gets to see of a failure or of the reason of an abort. `now` is in Unix milliseconds. */
export function toClientError(failure: unknown, now: number): Failure {
  const error = TRPCClientError.from<AppRouter>(failure as Error);
  const body = error.data?.error;
  return body === undefined ? error : new ApiClientError(error, body, readRetryAfter(error, now));
}

/** The HTTP status of the call: that of the response may be for a whole batch. */
export function readStatus(failure: Failure): number | undefined {
  return failure.data?.error.status ?? readResponse(failure)?.status;
}

/**
 * The whole seconds of Retry-After, from either of its forms (RFC 9110, section 10.2.3). In a batch it concerns only
 * what was refused.
 */
export function readRetryAfter(failure: Failure, now: number): number | undefined {
  if (![429, 503].includes(readStatus(failure) ?? 0)) return undefined;
  const field = readResponse(failure)?.headers.get('retry-after');
  if (field == null) return undefined;
  const seconds = /^\d+$/.test(field) ? Number(field) : Math.ceil((Date.parse(field) - now) / 1_000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

/** tRPC's links keep the response under this name. */
function readResponse({ meta }: Failure): Response | undefined {
  return meta?.response as Response | undefined;
}

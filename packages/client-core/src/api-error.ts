import { TRPCClientError } from '@trpc/client';
import type { AppRouter, FieldErrors } from './app-router.js';
import type { ErrorBody, ErrorCode, Scope } from './contract.js';
import { UnexpectedResponseError } from './transport.js';

/** The error that tRPC's links reject with */
export type Failure = TRPCClientError<AppRouter>;

/** An error response of the service. */
export class ApiClientError extends TRPCClientError<AppRouter> {
  /** Names what went wrong. */
  readonly code: ErrorCode;
  /** The HTTP status */
  readonly status: number;
  /**
   * With `invalid_request`: what is wrong with each invalid field. A text does not repeat its field's name, so it can
   * follow a label. Undefined if the error is not about fields.
   */
  readonly fields: FieldErrors | undefined;
  /** With `insufficient_scope`: the scope that the key lacks */
  readonly scope: Scope | undefined;
  /** Whole seconds until the call may be sent again; present with 429 and 503 */
  readonly retryAfterSeconds: number | undefined;
  /** The X-Request-Id of the response, by which the operator finds the call in the log */
  readonly requestId: string | undefined;

  constructor(error: Failure, { code, status }: ErrorBody, retryAfterSeconds?: number) {
    super(error.message, {
      result: error.shape ? { error: error.shape } : null,
      ...(error.meta === undefined ? {} : { meta: error.meta }),
    });
    // TRPCClientError's constructor sets the prototype to its own.
    Object.setPrototypeOf(this, ApiClientError.prototype);
    this.name = 'ApiClientError';
    this.code = code;
    this.status = status;
    this.fields = error.data?.fields;
    this.scope = error.data?.scope;
    this.retryAfterSeconds = retryAfterSeconds;
    this.requestId = responseOf(error)?.headers.get('x-request-id') ?? undefined;
  }
}

/**
 * Whether the service responded with an error, which `code` names. If not, the service could not be reached, a proxy
 * responded in its place, or the call was aborted.
 *
 * A program may hold two copies of this module, for `import` and for `require`, so the error's name decides.
 */
export function isApiError(error: unknown): error is ApiClientError {
  return error instanceof Error && error.name === 'ApiClientError';
}

/**
 * Turns a failure, or the reason of an abort, into the error that the caller receives. `now` is in Unix milliseconds.
 */
export function toClientError(failure: unknown, now: number): Failure {
  const error = TRPCClientError.from<AppRouter>(failure as Error);
  const body = readBody(error);
  if (body !== undefined) return new ApiClientError(error, body, readRetryAfter(error, now));
  const response = responseOf(error);
  if (response === undefined) return error;
  const { meta = {} } = error;
  return TRPCClientError.from<AppRouter>(new UnexpectedResponseError(response), { meta });
}

/** The service's error body. Other tRPC servers send none, or a different one, whatever the types say. */
export function readBody({ data }: Failure): ErrorBody | undefined {
  const body: Partial<ErrorBody> | null | undefined = data?.error;
  return typeof body?.code === 'string' && typeof body.status === 'number' ? (body as ErrorBody) : undefined;
}

/** The HTTP status of this call; the status of the response may be that of a whole batch. */
export function readStatus(failure: Failure): number | undefined {
  return readBody(failure)?.status ?? responseOf(failure)?.status;
}

/**
 * Reads Retry-After in either of its forms (RFC 9110, section 10.2.3), in whole seconds. In a batch the header applies
 * only to the calls that were denied.
 */
export function readRetryAfter(failure: Failure, now: number): number | undefined {
  if (![429, 503].includes(readStatus(failure) ?? 0)) return undefined;
  const value = responseOf(failure)?.headers.get('retry-after');
  if (value == null) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - now) / 1_000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

/** tRPC's links keep the response in `meta`, untyped. */
function responseOf({ meta }: Failure): Response | undefined {
  return meta?.response as Response | undefined;
}

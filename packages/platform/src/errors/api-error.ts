import type { Scope } from '@animal-store/definition/scopes';
import type { TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODE_NUMBER } from '@trpc/server/rpc';
import { type ErrorDefinition, errorTable } from './error-table.js';

export type ErrorCode = keyof typeof errorTable;

const definitions: Readonly<Record<ErrorCode, ErrorDefinition>> = errorTable;

/** The body of every error: exactly these three members. */
export interface ErrorBody {
  code: ErrorCode;
  message: string;
  status: number;
}

/** What is wrong with each invalid field, by its name: `{ name: 'is required' }`. A nested field is named `address.city`. */
export type FieldErrors = Readonly<Record<string, string>>;

/** tRPC's error shape, with REST's error body under `data.error`. */
export interface ErrorShape {
  message: string;
  code: TRPC_ERROR_CODE_NUMBER;
  data: {
    code: TRPC_ERROR_CODE_KEY;
    httpStatus: number;
    path?: string;
    error: ErrorBody;
    /** With `invalid_request`, if the error is about fields */
    fields?: FieldErrors;
    /** With `insufficient_scope`: the scope that the key lacks */
    scope?: Scope;
  };
}

/**
 * An error that the client may see: its message is written for the client and reveals nothing internal. It captures no
 * stack, which would cost more than the rest of a rejected request; the log has the stack of the cause.
 *
 * @internal
 */
export class ApiError extends Error {
  readonly code: ErrorCode;
  /** Response headers that belong to this error, for example Allow or Retry-After. */
  readonly headers: Readonly<Record<string, string>>;
  /** Like the scope, sent over tRPC only: the body over REST has exactly three members. */
  readonly fields: FieldErrors | undefined;
  readonly scope: Scope | undefined;

  constructor(
    code: ErrorCode,
    options: {
      message?: string;
      headers?: Record<string, string>;
      fields?: FieldErrors | undefined;
      scope?: Scope;
      cause?: unknown;
    } = {},
  ) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(options.message ?? errorTable[code].message, { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ApiError';
    this.code = code;
    this.headers = options.headers ?? definitions[code].headers ?? {};
    this.fields = options.fields;
    this.scope = options.scope;
  }

  get status(): number {
    return errorTable[this.code].status;
  }

  get body(): ErrorBody {
    return { code: this.code, message: this.message, status: this.status };
  }
}

/** Why a key may not call an operation (RFC 6750, section 3.1). */
export function insufficientScope(scope: Scope): ApiError {
  return new ApiError('insufficient_scope', {
    message: `The API key lacks the scope ${scope}.`,
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
    scope,
  });
}

/** @param seconds until the same request may be allowed */
export function tooManyRequests(code: 'rate_limit_exceeded' | 'api_key_banned', seconds: number): ApiError {
  const message = `${errorTable[code].message} Try again in ${seconds} s.`;
  return new ApiError(code, { message, headers: { 'retry-after': String(seconds) } });
}

/** @param seconds from now, whole and at least 1 */
export function overloaded(seconds: number): ApiError {
  const message = `The service is overloaded. Try again in ${seconds} s.`;
  return new ApiError('service_unavailable', { message, headers: { 'retry-after': String(seconds) } });
}

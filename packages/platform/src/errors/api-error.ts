import type { TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODE_NUMBER } from '@trpc/server/rpc';
import type { PlatformErrorCode, StoreError } from '../definition/definition.js';
import { type ErrorDefinition, platformErrors } from './error-table.js';

/** The body of every error: exactly these three members. */
export interface ErrorBody<Code extends string = string> {
  code: Code;
  message: string;
  status: number;
}

/** What is wrong with each invalid field, by its name: `{ name: 'is required' }`. A nested field is named `address.city`. */
export type FieldErrors = Readonly<Record<string, string>>;

/** tRPC's error shape, with REST's error body under `data.error`. */
export interface ErrorShape<Code extends string = string, Scope extends string = string> {
  message: string;
  code: TRPC_ERROR_CODE_NUMBER;
  data: {
    code: TRPC_ERROR_CODE_KEY;
    httpStatus: number;
    path?: string;
    error: ErrorBody<Code>;
    /** With `invalid_request`, if the error is about fields */
    fields?: FieldErrors;
    /** With `insufficient_scope`: the scope that the key lacks */
    scope?: Scope;
  };
}

/** An error code with what the table says of it: for the codes of a store */
export interface CodedError {
  readonly code: string;
  readonly definition: ErrorDefinition;
}

export interface ErrorOptions {
  message?: string;
  headers?: Record<string, string>;
  fields?: FieldErrors | undefined;
  scope?: string;
  cause?: unknown;
}

/**
 * An error that the client may see: its message is written for the client and reveals nothing internal. It captures no
 * stack, which would cost more than the rest of a rejected request; the log has the stack of the cause.
 *
 * @internal
 */
export class ApiError extends Error {
  readonly code: string;
  /** What the table of errors says of the code */
  readonly definition: ErrorDefinition;
  /** Response headers that belong to this error, for example Allow or Retry-After. */
  readonly headers: Readonly<Record<string, string>>;
  /** Like the scope, sent over tRPC only: the body over REST has exactly three members. */
  readonly fields: FieldErrors | undefined;
  readonly scope: string | undefined;

  constructor(error: PlatformErrorCode | CodedError, options: ErrorOptions = {}) {
    const definition: ErrorDefinition = typeof error === 'string' ? platformErrors[error] : error.definition;
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(options.message ?? definition.message, { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ApiError';
    this.code = typeof error === 'string' ? error : error.code;
    this.definition = definition;
    this.headers = options.headers ?? definition.headers ?? {};
    this.fields = options.fields;
    this.scope = options.scope;
  }

  get status(): number {
    return this.definition.status;
  }

  get body(): ErrorBody {
    return { code: this.code, message: this.message, status: this.status };
  }
}

/**
 * The class of the errors of a store: its codes are the store's own and the platform's.
 *
 * @internal
 */
export function createStoreError<Code extends string>(errors: Readonly<Record<Code, StoreError>>) {
  const coded = new Map<string, CodedError>(
    Object.entries<StoreError>(errors).map(([code, error]) => [
      code,
      { code, definition: { ...error, appliesTo: 'declaring' } },
    ]),
  );
  return class extends ApiError {
    constructor(code: Code | PlatformErrorCode, options?: ErrorOptions) {
      super(coded.get(code) ?? (code as PlatformErrorCode), options);
    }
  };
}

/** Why a key may not call an operation (RFC 6750, section 3.1). */
export function insufficientScope(scope: string): ApiError {
  return new ApiError('insufficient_scope', {
    message: `The API key lacks the scope ${scope}.`,
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
    scope,
  });
}

/** @param seconds until the same request may be allowed */
export function tooManyRequests(code: 'rate_limit_exceeded' | 'api_key_banned', seconds: number): ApiError {
  const message = `${platformErrors[code].message} Try again in ${seconds} s.`;
  return new ApiError(code, { message, headers: { 'retry-after': String(seconds) } });
}

/** @param seconds from now, whole and at least 1 */
export function overloaded(seconds: number): ApiError {
  const message = `The service is overloaded. Try again in ${seconds} s.`;
  return new ApiError('service_unavailable', { message, headers: { 'retry-after': String(seconds) } });
}

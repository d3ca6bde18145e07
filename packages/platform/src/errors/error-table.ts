import { BODY_LIMIT_BYTES } from '../contract/bounds.js';
import type { Protocol } from '../contract/protocol.js';
import type { Definition, PlatformErrorCode, StoreError } from '../definition/definition.js';
import { OUTAGE_MESSAGES } from './outage-messages.js';

const BODY_LIMIT = `${BODY_LIMIT_BYTES / 1024} KiB`;

/** The features of an operation that decide which errors it can respond with. */
export interface OperationFeatures {
  readonly isDeprecated: boolean;
  readonly isIdempotent: boolean;
  readonly hasBody: boolean;
  readonly hasPathParameters: boolean;
  readonly needsScope: boolean;
}

export interface ErrorDefinition extends StoreError {
  /** The only protocol that responds with the error. Default: all do */
  readonly protocol?: Protocol;
  /**
   * Which operations respond with the error: those with this feature and those that declare the error. `declaring`: only
   * those that declare it. Default: all
   */
  readonly appliesTo?: keyof OperationFeatures | 'declaring';
}

/** The codes that operations of any store respond with. */
export const platformErrors = {
  invalid_request: {
    status: 400,
    trpcCode: 'BAD_REQUEST',
    message: 'The request is invalid.',
    description:
      'the input is not JSON, or a field is missing or invalid, and `message` names each such field; or the request ' +
      'is not well-formed HTTP, and the response has no rate limit headers',
    examples: ['limit must be an integer from 1 to 100.', 'The request is not well-formed HTTP/1.1.'],
  },
  missing_api_key: {
    status: 401,
    trpcCode: 'UNAUTHORIZED',
    message: 'Send your API key as: Authorization: Bearer <API_KEY>',
    headers: { 'www-authenticate': 'Bearer' },
    description: 'no bearer token was sent',
  },
  invalid_api_key: {
    status: 401,
    trpcCode: 'UNAUTHORIZED',
    message: 'The API key is malformed, unknown, revoked or expired.',
    headers: { 'www-authenticate': 'Bearer' },
    description: 'the API key is malformed, unknown, revoked or expired',
  },
  insufficient_scope: {
    status: 403,
    trpcCode: 'FORBIDDEN',
    message: 'The API key lacks the scope that this operation needs.',
    headers: { 'www-authenticate': 'Bearer error="insufficient_scope"' },
    description: 'the API key lacks the scope of the operation; `WWW-Authenticate` names it',
    appliesTo: 'needsScope',
  },
  origin_not_allowed: {
    status: 403,
    trpcCode: 'FORBIDDEN',
    message: 'Scripts of this Origin may not call the service.',
    description: 'the `Origin` is not among those whose scripts may call the service',
    protocol: 'mcp',
  },
  not_found: {
    status: 404,
    trpcCode: 'NOT_FOUND',
    message: 'There is nothing at this address.',
    description: 'there is nothing at this address',
    appliesTo: 'hasPathParameters',
  },
  method_not_allowed: {
    status: 405,
    trpcCode: 'METHOD_NOT_SUPPORTED',
    message: 'This method is not allowed at this address.',
    description: 'the path does not support this method; `Allow` lists those it does',
  },
  idempotency_key_in_use: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The first request with this Idempotency-Key is still running. Try again.',
    description: 'a request with this Idempotency-Key is still running',
    appliesTo: 'isIdempotent',
  },
  operation_removed: {
    status: 410,
    trpcCode: 'NOT_FOUND',
    message: 'This operation has been removed.',
    description: "the operation's removal date has passed",
    appliesTo: 'isDeprecated',
  },
  payload_too_large: {
    status: 413,
    trpcCode: 'PAYLOAD_TOO_LARGE',
    message: `The body is larger than ${BODY_LIMIT}.`,
    description: `the body is larger than ${BODY_LIMIT}`,
    appliesTo: 'hasBody',
  },
  unsupported_media_type: {
    status: 415,
    trpcCode: 'UNSUPPORTED_MEDIA_TYPE',
    message: 'The body must be application/json without a Content-Encoding.',
    description: 'the body is not application/json, or has a Content-Encoding',
    appliesTo: 'hasBody',
  },
  idempotency_key_reused: {
    status: 422,
    trpcCode: 'UNPROCESSABLE_CONTENT',
    message: 'This Idempotency-Key was used with another body. Choose a new one.',
    description: 'this Idempotency-Key was used with another body',
    appliesTo: 'isIdempotent',
  },
  rate_limit_exceeded: {
    status: 429,
    trpcCode: 'TOO_MANY_REQUESTS',
    message: 'The rate limit is used up.',
    description: 'the rate limit is used up; wait for `Retry-After`, and longer each time this happens again',
  },
  api_key_banned: {
    status: 429,
    trpcCode: 'TOO_MANY_REQUESTS',
    message: 'The API key is banned for a while.',
    description:
      'the key kept sending while it was over its limit, or the operator has banned it; wait for `Retry-After`',
  },
  internal_error: {
    status: 500,
    trpcCode: 'INTERNAL_SERVER_ERROR',
    message: 'Something went wrong inside the service. Quote the X-Request-Id when you report it.',
    description: 'an error inside the service; quote the `X-Request-Id` when you report it',
  },
  not_implemented: {
    status: 501,
    trpcCode: 'NOT_IMPLEMENTED',
    message: 'The service does not implement this part of HTTP.',
    description:
      'the service knows no transfer coding but chunked; or it does not know the method, and the response has no rate limit ' +
      'headers',
  },
  service_unavailable: {
    status: 503,
    trpcCode: 'SERVICE_UNAVAILABLE',
    message: OUTAGE_MESSAGES.read,
    headers: { 'retry-after': '1' },
    description:
      'the database cannot serve the request now, and `message` says whether a change may have been carried out; or the service ' +
      'is overloaded, and nothing was',
    examples: [
      OUTAGE_MESSAGES.read,
      OUTAGE_MESSAGES.idempotentCreate,
      OUTAGE_MESSAGES.change,
      'The service is overloaded. Try again in 2 s.',
    ],
  },
} as const satisfies Record<PlatformErrorCode, ErrorDefinition>;

/** What is said of each error code of a service, in the order of the document */
export type ErrorTable = ReadonlyMap<string, ErrorDefinition>;

/** Every error code of a store's service: its HTTP status, its messages, and the operations that it applies to. */
export function createErrorTable({ errors, scopes }: Pick<Definition, 'errors' | 'scopes'>): ErrorTable {
  const table = new Map<string, ErrorDefinition>(Object.entries(platformErrors));
  const scope = scopes.find((each) => each.endsWith(':write')) ?? scopes[0];
  table.set('insufficient_scope', {
    ...platformErrors.insufficient_scope,
    examples: [`The API key lacks the scope ${scope}.`],
  });
  for (const [code, error] of Object.entries<StoreError>(errors))
    table.set(code, { ...error, appliesTo: 'declaring' });
  return table;
}

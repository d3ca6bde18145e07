import { STATUS_CODES } from 'node:http';
import type { OpenAPIObject } from 'trpc-to-openapi';
import { ApiError, type ErrorCode, errorTable } from '../errors.js';
import { COMMON_HEADERS, type HeaderName, refer } from './response-headers.js';

type Responses = NonNullable<NonNullable<OpenAPIObject['components']>['responses']>;
export type Response = Exclude<Responses[string], { $ref: string }>;

/** What of an operation decides which errors it can answer with. */
export interface Traits {
  readonly isDeprecated: boolean;
  readonly isIdempotent: boolean;
  readonly hasBody: boolean;
  readonly hasPathValue: boolean;
  /** A query or a body, which can be invalid; a path value that is names nothing. */
  readonly hasInput: boolean;
}

interface Description {
  readonly meaning: string;
  /** The `message` of the example */
  readonly message: string;
  /** Whether an operation can answer so; left out: every operation can */
  readonly when?: (traits: Traits) => boolean;
}

/** A code that is new in errorTable does not compile until it is described here. */
const descriptions: Record<ErrorCode, Description> = {
  invalid_request: {
    meaning: 'the input is not JSON, or a field is missing or invalid; `message` names each such field',
    message: 'status must be one of available, pending, sold.',
    when: ({ hasInput }) => hasInput,
  },
  missing_api_key: {
    meaning: 'no bearer token was sent',
    message: 'Send your API key as: Authorization: Bearer <API_KEY>',
  },
  invalid_api_key: {
    meaning: 'the API key is malformed, unknown, revoked or expired',
    message: 'The API key is not valid here: it is malformed, unknown, revoked or expired.',
  },
  not_found: {
    meaning: 'nothing is there under this address',
    message: 'There is no pet with the id 7.',
    when: ({ hasPathValue }) => hasPathValue,
  },
  method_not_allowed: {
    meaning: 'the path does not answer the method of the request; `Allow` names those that it does',
    message: 'This path answers GET, HEAD only.',
  },
  idempotency_key_in_use: {
    meaning: 'a request with this Idempotency-Key is still running',
    message: 'The first request with this Idempotency-Key still runs. Try again.',
    when: ({ isIdempotent }) => isIdempotent,
  },
  operation_removed: {
    meaning: 'the removal date of the operation has come',
    message: 'This operation was removed; its successor is /pets.',
    when: ({ isDeprecated }) => isDeprecated,
  },
  payload_too_large: {
    meaning: 'the body is over 64 KiB',
    message: 'The body is over 64 KiB.',
    when: ({ hasBody }) => hasBody,
  },
  unsupported_media_type: {
    meaning: 'the body is not application/json, or has a Content-Encoding',
    message: 'The body must be application/json.',
    when: ({ hasBody }) => hasBody,
  },
  idempotency_key_reused: {
    meaning: 'this Idempotency-Key was used with another body',
    message: 'This Idempotency-Key was used with another body: choose a new one.',
    when: ({ isIdempotent }) => isIdempotent,
  },
  rate_limit_exceeded: {
    meaning: 'the rate limit is used up; wait for `Retry-After`, then back off exponentially',
    message: 'The rate limit is used up. Try again in 60 s.',
  },
  api_key_banned: {
    meaning: 'the key went on sending while it was over its limit, and is banned for a while',
    message: 'The API key is banned for a while. Try again in 300 s.',
  },
  internal_error: {
    meaning: 'a fault of the service; name the `X-Request-Id` when you report it',
    message: 'Something went wrong on our side. Name the X-Request-Id when you report it.',
  },
  service_unavailable: {
    meaning: 'the service cannot reach its database',
    message: 'The service cannot reach its database. Try again shortly.',
  },
};

const STATUS_HEADERS: Readonly<Record<number, HeaderName>> = {
  401: 'WWW-Authenticate',
  405: 'Allow',
  429: 'Retry-After',
  503: 'Retry-After',
};

const codes = Object.keys(errorTable) as ErrorCode[];
const statuses = [...new Set(codes.map((code) => errorTable[code].status))];

/** The body of every error: exactly its three members. */
export const errorSchema = {
  type: 'object',
  description: 'What every response with a status of 400 or more carries',
  properties: {
    code: { type: 'string', enum: codes, description: 'Machine-readable error code' },
    message: { type: 'string', description: 'Human-readable description' },
    status: { type: 'integer', minimum: 400, maximum: 599, description: 'The HTTP status code' },
  },
  required: ['code', 'message', 'status'],
  additionalProperties: false,
  examples: [toExample('not_found')],
};

/** The response of each status, by its name among the document's components. */
export const errorResponses: Record<string, Response> = Object.fromEntries(
  statuses.map((status) => [nameResponse(status), describeStatus(status)]),
);

/** The statuses of the errors that an operation can answer with, ascending. */
export function listErrorStatuses(traits: Traits): number[] {
  const possible = codes.filter((code) => descriptions[code].when?.(traits) ?? true);
  return [...new Set(possible.map((code) => errorTable[code].status))].sort((a, b) => a - b);
}

/** The name of a status' response among the components, for example TooManyRequests. */
export function nameResponse(status: number): string {
  return (STATUS_CODES[status] ?? `Status${status}`).replaceAll(' ', '');
}

function describeStatus(status: number): Response {
  const ofStatus = codes.filter((code) => errorTable[code].status === status);
  const header = STATUS_HEADERS[status];
  return {
    description: ofStatus.map((code) => `\`${code}\`: ${descriptions[code].meaning}.`).join('\n\n'),
    headers: refer(header === undefined ? COMMON_HEADERS : [...COMMON_HEADERS, header]),
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        examples: Object.fromEntries(ofStatus.map((code) => [code, { value: toExample(code) }])),
      },
    },
  };
}

function toExample(code: ErrorCode): object {
  return new ApiError(code, descriptions[code].message).body;
}

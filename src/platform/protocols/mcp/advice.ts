import type { ApiError, ErrorCode } from '../../errors/api-error.js';
import type { JsonSchema } from './schemas.js';

/** What a model can do about an error whose message does not say so. */
const ADVICE: Partial<Readonly<Record<ErrorCode, string>>> = {
  invalid_request: 'Correct the arguments and call again.',
  insufficient_scope:
    'Calling again does not help: tell the user that this needs an API key with that scope.',
  not_found: 'Check the identifier, for example with a tool that lists.',
  idempotency_key_in_use: 'Wait a second, and repeat the call with the same idempotencyKey and arguments.',
  idempotency_key_reused:
    'An idempotencyKey belongs to one set of arguments. If these are for something else, choose a new one.',
  operation_removed: 'List the tools again, and use another one.',
};
/** The same, where the tool changes something. */
const ADVICE_ON_CHANGES: typeof ADVICE = {
  internal_error: 'It may have been done nevertheless: look before you repeat it.',
  service_unavailable:
    'It may have been done nevertheless: repeat what adds something only with the same idempotencyKey.',
};

/** An error as a tool returns it. */
export interface ToolError {
  readonly code: ErrorCode;
  /** In words that tell a model what to do next */
  readonly message: string;
  readonly status: number;
  readonly fields?: ApiError['fields'];
  readonly scope?: ApiError['scope'];
  readonly retryAfterSeconds?: number;
}

/** The JSON Schema of a tool's error. Later versions may have further codes. */
export const ERROR_SCHEMA: JsonSchema = {
  type: 'object',
  description: 'What a result with `isError` has instead',
  properties: {
    code: { type: 'string', description: 'Machine-readable error code' },
    message: { type: 'string', description: 'What is wrong, and what to do next' },
    status: { type: 'integer', description: 'The HTTP status code that the error has over REST' },
    fields: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'What is wrong with each argument, by its name',
    },
    scope: { type: 'string', description: 'The scope that the API key lacks' },
    retryAfterSeconds: { type: 'integer', description: 'How long to wait before the next call' },
  },
  required: ['code', 'message', 'status'],
};

/**
 * @param changes whether the tool changes anything
 * @param requestId which no header shows to a model
 */
export function toToolError(error: ApiError, changes: boolean, requestId?: string): ToolError {
  const { code, message, status, fields, scope, headers } = error;
  const id = code === 'internal_error' && requestId !== undefined ? `It is ${requestId}.` : undefined;
  const advice = ADVICE[code] ?? (changes ? ADVICE_ON_CHANGES[code] : undefined);
  const sentences = [message, id, advice].filter((sentence) => sentence !== undefined);
  const retryAfter = headers['retry-after'];
  return {
    code,
    message: sentences.join(' '),
    status,
    ...(fields && { fields }),
    ...(scope && { scope }),
    ...(retryAfter && { retryAfterSeconds: Number(retryAfter) }),
  };
}

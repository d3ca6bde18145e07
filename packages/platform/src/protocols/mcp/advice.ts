import type { ApiError } from '../../errors/api-error.js';
import { isOutageMessage } from '../../errors/outage-messages.js';

/** Replace messages about HTTP by messages in terms that a model knows. */
const MESSAGES: Partial<Readonly<Record<string, string>>> = {
  not_found: 'Nothing has this identifier.',
  idempotency_key_in_use: 'The first call with this idempotencyKey is still running.',
  idempotency_key_reused: 'This idempotencyKey was used with other arguments.',
};
/** What a model can do about an error whose message does not say so. */
const ADVICE: Partial<Readonly<Record<string, string>>> = {
  invalid_request: 'Correct the arguments and call again.',
  insufficient_scope:
    'Calling again does not help: tell the user that this needs an API key with that scope.',
  not_found: 'Check the identifier, for example with a tool that lists.',
  idempotency_key_in_use: 'Wait a second, and repeat the call with the same idempotencyKey and arguments.',
  idempotency_key_reused:
    'An idempotencyKey belongs to one set of arguments. If these are for something else, choose a new one.',
  operation_removed: 'List the tools again, and use another one.',
};
/** Advice for tools that change something. */
const ADVICE_ON_CHANGES: typeof ADVICE = {
  internal_error: 'The change may have been made nevertheless: look before you repeat the call.',
  service_unavailable:
    'The change may have been made nevertheless: repeat a call that adds something only with the same idempotencyKey.',
};

/** An error as a tool returns it. */
export interface ToolError {
  readonly code: string;
  /** In words that tell a model what to do next */
  readonly message: string;
  readonly status: number;
  readonly fields?: ApiError['fields'];
  readonly scope?: ApiError['scope'];
  readonly retryAfterSeconds?: number;
}

/**
 * @param changes whether the tool changes anything
 * @param requestId included in the message, because a model sees no headers
 */
export function toToolError(error: ApiError, changes: boolean, requestId?: string): ToolError {
  const { code, definition, message, status, fields, scope, headers } = error;
  const id = code === 'internal_error' && requestId !== undefined ? `It is ${requestId}.` : undefined;
  const advice = definition.advice ?? ADVICE[code] ?? (changes ? ADVICE_ON_CHANGES[code] : undefined);
  const { message: standard } = definition;
  // The advice says what the message of an outage does, in terms that a model knows.
  const known = message === standard || isOutageMessage(message) ? (MESSAGES[code] ?? standard) : message;
  const sentences = [known, id, advice].filter((sentence) => sentence !== undefined);
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

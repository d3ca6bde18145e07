import { isApiError, type Scope } from '@animal-store/client';

/** Why a call failed, for people who do not read status codes. */
export interface Problem {
  readonly type: 'unknown-key' | 'forbidden' | 'rate-limited' | 'banned' | 'unavailable' | 'error';
  readonly title: string;
  readonly text: string;
  /** Whole seconds until an automatic retry; undefined if there is none */
  readonly waitSeconds?: number;
}

/** How long to wait for a service that sent no Retry-After. By then the client has already retried. */
const DEFAULT_WAIT_SECONDS = 5;

/** A longer wait is for the end of a daily window. */
const MINUTE_SECONDS = 60;

/** Anything but a response of the service means that the service could not be reached. */
export function describeProblem(error: unknown): Problem {
  if (!isApiError(error)) return unavailable(DEFAULT_WAIT_SECONDS);
  const { code, message, scope, requestId, retryAfterSeconds = DEFAULT_WAIT_SECONDS } = error;
  switch (code) {
    case 'missing_api_key':
    case 'invalid_api_key':
      return {
        type: 'unknown-key',
        title: 'This key has ended',
        text: 'It was revoked or replaced, or it has expired. “Change key” at the top takes another one.',
      };
    case 'insufficient_scope':
      return describeMissingScope(scope);
    case 'rate_limit_exceeded':
      return {
        type: 'rate-limited',
        title: retryAfterSeconds > MINUTE_SECONDS ? 'Enough for one day' : 'A short pause',
        text: 'This key has used up its requests for now.',
        waitSeconds: retryAfterSeconds,
      };
    case 'api_key_banned':
      return {
        type: 'banned',
        title: 'This key is resting',
        text: 'It went on asking after it was told to wait, so the store has closed to it for a while.',
        waitSeconds: retryAfterSeconds,
      };
    case 'pet_has_open_order':
      return {
        type: 'error',
        title: 'It is ordered',
        text: 'Its status changes with its order: deliver or cancel that.',
      };
    case 'service_unavailable':
      return unavailable(retryAfterSeconds);
    case 'internal_error': {
      const text = requestId === undefined ? message : `${message} It is ${requestId}.`;
      return { type: 'error', title: 'That did not work', text };
    }
    default:
      return { type: 'error', title: 'That did not work', text: message };
  }
}

const FORBIDDEN: Partial<Record<Scope, string>> = {
  'pets:write': 'This key may not add animals',
  'orders:read': 'This key may not see orders',
  'orders:write': 'This key may not order animals',
};

export function describeMissingScope(scope: Scope | undefined): Problem {
  return {
    type: 'forbidden',
    title: (scope && FORBIDDEN[scope]) ?? 'This key may not look',
    text: `It lacks the scope ${scope}. Whoever issued it can add that, or give you another one.`,
  };
}

function unavailable(waitSeconds: number): Problem {
  return {
    type: 'unavailable',
    title: 'The store cannot be reached',
    text: 'It may be restarting, or the connection may be down. Nothing is lost.',
    waitSeconds,
  };
}

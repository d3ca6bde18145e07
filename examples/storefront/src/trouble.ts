import { isApiError } from '@animal-store/client';

/** Why a call failed, for those who do not read status codes. */
export interface Trouble {
  readonly kind: 'key' | 'refused' | 'banned' | 'away' | 'fault';
  readonly title: string;
  readonly text: string;
  /** Whole seconds after which it is worth trying again by itself; without it, it is not */
  readonly waitSeconds?: number;
}

/** How long to leave a service alone that did not say when to come back. The client has tried several times by then. */
const AWAY_SECONDS = 5;

/** What became of a call. What is no answer of the service means that it was not reached. */
export function describeTrouble(error: unknown): Trouble {
  if (!isApiError(error)) return away(AWAY_SECONDS);
  const { code, message, requestId, retryAfterSeconds = AWAY_SECONDS } = error;
  switch (code) {
    case 'missing_api_key':
    case 'invalid_api_key':
      return { kind: 'key', title: 'The store does not know this key', text: message };
    case 'rate_limit_exceeded':
      return {
        kind: 'refused',
        title: 'A short pause',
        text: 'This key has used up its requests for now.',
        waitSeconds: retryAfterSeconds,
      };
    case 'api_key_banned':
      return {
        kind: 'banned',
        title: 'This key is resting',
        text: 'It went on asking after it was told to wait, so the store has closed to it for a while.',
        waitSeconds: retryAfterSeconds,
      };
    case 'service_unavailable':
      return away(retryAfterSeconds);
    case 'internal_error': {
      const text = requestId === undefined ? message : `${message} It is ${requestId}.`;
      return { kind: 'fault', title: 'That did not work', text };
    }
    default:
      return { kind: 'fault', title: 'That did not work', text: message };
  }
}

function away(waitSeconds: number): Trouble {
  return {
    kind: 'away',
    title: 'The store cannot be reached',
    text: 'It may be restarting, or the connection may be down. Nothing is lost.',
    waitSeconds,
  };
}

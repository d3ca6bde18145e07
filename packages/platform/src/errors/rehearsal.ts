import { FIRST_BAN_SECONDS } from '../contract/bans.js';
import type { Protocol } from '../contract/protocol.js';
import { ApiError, type CodedError, insufficientScope, tooManyRequests } from './api-error.js';
import type { ErrorTable } from './error-table.js';

const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const WORD = `(?:${TOKEN}|"(?:[^"\\\\]|\\\\.)*")`;
/**
 * One preference of a list with its value and, unread, its parameters (RFC 7240, section 2). Each `\s*` is bound to what
 * follows it. Two side by side could share blanks in any way, and a header full of blanks would take a second.
 */
const PREFERENCE = new RegExp(
  `[\\s,]*(${TOKEN})(?:\\s*=(?:\\s*(${WORD}))?)?(?:\\s*;(?:\\s*${TOKEN}(?:\\s*=\\s*${WORD})?)?)*\\s*(?=,|$)`,
  'gy',
);

/** An error with one of these statuses ends the whole request. With any other, each call of a tRPC batch has its own error. */
const REQUEST_STATUSES: ReadonlySet<number> = new Set([401, 405, 413, 415, 429, 501]);

function isOfRequest({ code, definition }: CodedError): boolean {
  return code === 'origin_not_allowed' || REQUEST_STATUSES.has(definition.status);
}

/** What the headers of a rehearsed error need. */
interface RehearsedRequest {
  /** The errors of the service */
  readonly errors: ErrorTable;
  /** The methods of the path, as in Allow */
  readonly allow: string | undefined;
  /** Seconds until the window ends that is tightest for the caller */
  readonly resetSeconds: number;
  readonly protocol: Protocol | undefined;
}

/** An error that a client asks for, to test its own error handling. */
export interface Rehearsal {
  readonly code: string;
  /** Whether each call of a batch responds with the error, instead of the request as a whole */
  readonly isOfCalls: boolean;
  /** @param scope that the operation needs */
  createError(scope: string | undefined): ApiError;
}

/** The error that a Prefer header asks for; undefined if it asks for none. For a code that does not exist, a 400. */
export function readRehearsal(prefer: string, request: RehearsedRequest): Rehearsal | ApiError | undefined {
  const code = readPreference(prefer, 'error');
  if (code === undefined) return undefined;
  const definition = request.errors.get(code);
  if (definition === undefined || (definition.protocol ?? request.protocol) !== request.protocol) {
    const message = `error in Prefer must be one of ${listCodes(request).join(', ')}.`;
    return new ApiError('invalid_request', { message });
  }
  const coded = { code, definition };
  return {
    code,
    isOfCalls: !isOfRequest(coded),
    createError(scope) {
      const error = createStandardError(coded, scope, request);
      const headers = { ...error.headers, 'preference-applied': `error=${code}` };
      return Object.assign(error, { headers });
    },
  };
}

/**
 * The value of a preference, or of the first if there are several; undefined if there is none, empty if it has no value.
 * Everything after a malformed part is ignored, as RFC 7240 allows.
 */
function readPreference(prefer: string, name: string): string | undefined {
  for (const [, token, word = ''] of prefer.matchAll(PREFERENCE)) {
    if (token?.toLowerCase() !== name) continue;
    return word.startsWith('"') ? word.slice(1, -1).replaceAll(/\\(.)/g, '$1') : word;
  }
  return undefined;
}

/** The error with the headers that any request gets with it, and its standard message. */
function createStandardError(
  coded: CodedError,
  scope: string | undefined,
  { allow, resetSeconds }: RehearsedRequest,
): ApiError {
  const { code } = coded;
  if (code === 'rate_limit_exceeded') return tooManyRequests(code, resetSeconds);
  if (code === 'api_key_banned') return tooManyRequests(code, FIRST_BAN_SECONDS);
  if (code === 'insufficient_scope' && scope !== undefined && scope !== 'any')
    return insufficientScope(scope);
  if (code === 'method_not_allowed' && allow !== undefined) return new ApiError(code, { headers: { allow } });
  return new ApiError(coded);
}

/** The codes that a protocol responds with. */
function listCodes({ errors, protocol }: RehearsedRequest): string[] {
  return [...errors].filter(([, { protocol: only = protocol }]) => only === protocol).map(([code]) => code);
}

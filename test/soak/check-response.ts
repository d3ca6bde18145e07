import { isDeepStrictEqual } from 'node:util';
import { possibleVersions } from './callers.js';
import type { Call } from './calls.js';
import type { SoakRequest } from './mix.js';
import type { SoakResponse } from './send.js';

interface ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly status: number;
}

/** What one call of a request got. */
type Outcome = { readonly output: unknown } | { readonly error: ErrorBody };

/** The codes of the errors that a request may get. 409 is none: a repetition waits for the first create to end. */
const EXPECTED_ERRORS: Readonly<Record<number, readonly string[]>> = {
  401: ['invalid_api_key'],
  429: ['rate_limit_exceeded', 'api_key_banned'],
  500: ['internal_error'],
  503: ['service_unavailable'],
};

/**
 * Returns what is wrong with a response. Every call must have succeeded for its own caller, or have an error that its
 * caller's limits, faults or the database's constraint explain. 207 is tRPC's status for a batch whose calls have
 * different ones.
 */
export function checkResponse(
  request: SoakRequest,
  response: SoakResponse,
  { hasFaults, sentAt }: { readonly hasFaults: boolean; readonly sentAt: number },
): string | undefined {
  const versions = possibleVersions(request.caller, sentAt);
  const isRevoked = versions.some((version) => version.isRevoked);
  if (response.headers['x-request-id'] !== request.id) return 'X-Request-Id is another one';
  const outcomes = readOutcomes(request, response);
  if (outcomes === undefined) return 'the body has not the form of a response to this request';
  const problem = checkStatus(request, response, outcomes) ?? checkLimitHeaders(request, response, versions);
  if (problem !== undefined) return problem;
  for (const [index, call] of request.calls.entries()) {
    const outcome = outcomes[index] as Outcome;
    const callProblem =
      'error' in outcome
        ? checkError(outcome.error, response, explainedStatuses(request, call, { hasFaults, isRevoked }))
        : (call.check(outcome.output) ??
          (request.protocol === 'rest' ? call.checkHeaders(response.headers, outcome.output) : undefined));
    if (callProblem !== undefined) return callProblem;
    if ('error' in outcome && outcome.error.status === 503) call.noteLost?.();
  }
  return checkReplay(request, response, outcomes);
}

/** Undefined when the body is malformed. */
function readOutcomes(
  { protocol, calls, isBatch }: SoakRequest,
  { status, body }: SoakResponse,
): Outcome[] | undefined {
  const value = parse(body);
  if (protocol === 'rest') return [status < 400 ? { output: value } : { error: value as ErrorBody }];
  // A batch that is not admitted gets one error for all of its calls.
  const results = Array.isArray(value) && isBatch ? value : calls.map(() => value);
  if (results.length !== calls.length || (isBatch && status < 400 && results[0] === value)) return undefined;
  return results.map((result) =>
    result?.result !== undefined ? { output: result.result.data } : { error: result?.error?.data?.error },
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function checkStatus(
  { protocol, calls }: SoakRequest,
  { status }: SoakResponse,
  outcomes: readonly Outcome[],
): string | undefined {
  const success = protocol === 'rest' && calls[0]?.operation === 'createPet' ? 201 : 200;
  const statuses = new Set(outcomes.map((outcome) => ('error' in outcome ? outcome.error?.status : success)));
  const expected = statuses.size > 1 ? 207 : [...statuses][0];
  return status === expected ? undefined : 'the status does not fit the body';
}

/** The statuses of errors that a call may have. */
function explainedStatuses(
  { caller }: SoakRequest,
  { isRejected }: Call,
  { hasFaults, isRevoked }: { readonly hasFaults: boolean; readonly isRevoked: boolean },
): number[] {
  return [
    ...(caller.isLimited ? [429] : []),
    ...(hasFaults ? [503] : []),
    ...(isRejected ? [500] : []),
    ...(isRevoked ? [401] : []),
  ];
}

function checkError(
  error: ErrorBody,
  { headers }: SoakResponse,
  explained: readonly number[],
): string | undefined {
  const { code, message, status } = error;
  const isComplete =
    isDeepStrictEqual(Object.keys(error).toSorted(), ['code', 'message', 'status']) && message !== '';
  if (!isComplete || !EXPECTED_ERRORS[status]?.includes(code)) return 'this error was not expected';
  if (!explained.includes(status)) return 'nothing explains this error';
  return status < 429 || status === 500 || Number(headers['retry-after']) >= 1
    ? undefined
    : 'Retry-After is missing';
}

/** When the key could not be looked up, or is not valid, the limits are not its own. */
function checkLimitHeaders(
  { caller }: SoakRequest,
  { status, headers }: SoakResponse,
  versions: ReturnType<typeof possibleVersions>,
): string | undefined {
  if (status === 503 || status === 401) return undefined;
  const policy = String(headers['ratelimit-policy']);
  const limit = Number(headers['x-ratelimit-limit']);
  const remaining = Number(headers['x-ratelimit-remaining']);
  const isOwn = versions.some(
    ({ perMinute, isRevoked }) =>
      !isRevoked &&
      policy.includes(`q=${perMinute};w=60`) &&
      policy.includes(`q=${caller.perDay};w=86400`) &&
      [perMinute, caller.perDay].includes(limit) &&
      remaining >= 0 &&
      remaining <= limit,
  );
  return isOwn ? undefined : 'the limits are not those of the caller';
}

/** Of all responses to one key, at most one is not a replay. A batch is a replay only if all of its creates are. */
function checkReplay(
  { key, isBatch }: SoakRequest,
  { headers }: SoakResponse,
  outcomes: readonly Outcome[],
): string | undefined {
  const isReplay = headers['idempotency-replayed'] === 'true';
  if (key === undefined) return isReplay ? 'a replay without a key' : undefined;
  if (isBatch || isReplay || outcomes.some((outcome) => 'error' in outcome)) return undefined;
  key.firstResponses += 1;
  return key.firstResponses > 1 ? 'a second response is not marked as a replay' : undefined;
}

import { isDeepStrictEqual } from 'node:util';
import { errorTable } from '../../packages/platform/test/support/error-table.js';
import type { Call } from './call.js';
import { possibleVersions } from './callers.js';
import { operationOf, successStatus } from './operations.js';
import type { SoakRequest } from './requests.js';
import type { SoakResponse } from './send.js';

interface ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly status: number;
}

/** What one call of a request got. */
type Outcome = { readonly output: unknown } | { readonly error: ErrorBody };

interface CheckOptions {
  readonly hasFaults: boolean;
  /** By performance.now() */
  readonly sentAt: number;
  /** Called for each call */
  count(operation: string, status: string | number): void;
}

/**
 * Returns what is wrong with a response. Every call must have succeeded for its own caller, or have an error that its
 * caller's limits, faults, the state of what it changes or the database's constraint explain. 207 is tRPC's status for a batch whose calls have
 * different ones.
 */
export function checkResponse(
  request: SoakRequest,
  response: SoakResponse,
  { hasFaults, sentAt, count }: CheckOptions,
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
    // What was refused explains nothing, not even its own refusal.
    if ('error' in outcome) noteError(outcome.error, call);
    const callProblem =
      'error' in outcome
        ? (checkError(outcome.error, response, explainedCodes(request, call, { hasFaults, isRevoked })) ??
          checkRefusal(outcome.error, call, sentAt))
        : (call.check(outcome.output, sentAt) ??
          (request.protocol === 'rest' ? call.checkHeaders?.(response.headers, outcome.output) : undefined));
    if (callProblem !== undefined) return callProblem;
    const status =
      'error' in outcome
        ? `${outcome.error.status} ${outcome.error.code}`
        : successStatus(operationOf(call.operation));
    count(call.operation, status);
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
  const success = protocol === 'rest' ? successStatus(operationOf((calls[0] as Call).operation)) : 200;
  const statuses = new Set(outcomes.map((outcome) => ('error' in outcome ? outcome.error?.status : success)));
  const expected = statuses.size > 1 ? 207 : [...statuses][0];
  return status === expected ? undefined : 'the status does not fit the body';
}

/** The codes of the errors that a call may get. */
function explainedCodes(
  { caller, calls, key }: SoakRequest,
  { operation, isRejected }: Call,
  { hasFaults, isRevoked }: { readonly hasFaults: boolean; readonly isRevoked: boolean },
): string[] {
  const { errors = [], freeForKey } = operationOf(operation);
  const isFree = freeForKey !== undefined && calls.length === 1;
  return [
    ...errors,
    ...(caller.isLimited && !isFree ? (['rate_limit_exceeded', 'api_key_banned'] as const) : []),
    ...(hasFaults ? (['service_unavailable'] as const) : []),
    // A repetition waits for the first create to end, though not for as long as a fault may last.
    ...(hasFaults && key !== undefined ? (['idempotency_key_in_use'] as const) : []),
    ...(isRejected ? (['internal_error'] as const) : []),
    ...(isRevoked ? (['invalid_api_key'] as const) : []),
  ];
}

/** An error that the operation declares is about the state of what it changes. */
function checkRefusal({ code }: ErrorBody, call: Call, sentAt: number): string | undefined {
  const isDeclared = operationOf(call.operation).errors?.includes(code);
  return isDeclared ? call.checkRefusal?.(sentAt, code) : undefined;
}

function noteError({ code }: ErrorBody, call: Call): void {
  const isOpen = code === 'service_unavailable' || code === 'idempotency_key_in_use';
  if (isOpen) call.noteLost?.();
  else call.noteRefused?.();
}

function checkError(
  error: ErrorBody,
  { headers }: SoakResponse,
  explained: readonly string[],
): string | undefined {
  const { code, message, status } = error;
  const isComplete =
    isDeepStrictEqual(Object.keys(error).toSorted(), ['code', 'message', 'status']) && message !== '';
  if (!isComplete || errorTable[code]?.status !== status) return 'this is not the body of an error';
  if (!explained.includes(code)) return 'nothing explains this error';
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

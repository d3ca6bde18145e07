import type { Operation, OperationLink, TRPCLink } from '@trpc/client';
import { observable } from '@trpc/server/observable';
import { createAbortError, onAbort, readReason } from './abort.js';
import { type Failure, readBody, readRetryAfter, readStatus, toClientError } from './api-error.js';
import type { AppRouter } from './app-router.js';
import { IDEMPOTENT_MUTATIONS } from './idempotent.js';
import { NetworkError } from './transport.js';

/** Time and randomness, which tests can replace. */
export interface Clock {
  /** Unix milliseconds */
  now(): number;
  /** At least 0, less than 1 */
  random(): number;
  /** Rejects with the signal's reason as soon as it is aborted. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** The limits of one call. */
export interface RetryOptions {
  readonly attempts: number;
  /** How long the call may take, including waits */
  readonly totalSeconds: number;
  readonly clock: Clock;
}

/** The upper bound of the first back-off; it doubles with each attempt until it reaches MAX_BACKOFF_MS. */
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8_000;
/** Timers overflow beyond this. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Rate limits, outages, and errors of the service or of a proxy in front of it */
const TRANSIENT_STATUSES = [429, 500, 502, 503, 504];

type Next = Parameters<OperationLink<AppRouter>>[0]['next'];
type Result = Parameters<NonNullable<Parameters<ReturnType<Next>['subscribe']>[0]['next']>>[0];

/**
 * Retries what is safe to repeat after a transient error: queries, and mutations with an Idempotency-Key. Any other
 * mutation may have been executed, unless the status is 429. The wait is that of Retry-After, or an exponential back-off
 * with full jitter. If the wait would exceed the total time, the call fails at once with the error of the last attempt.
 *
 * Calls are retried, not HTTP requests: of a batch, only the calls that failed.
 *
 * tRPC's own retryLink does not pass the error to its delay function, does not end a wait when the call is aborted, and
 * has no total time.
 */
export function retryLink(options: RetryOptions): TRPCLink<AppRouter> {
  return () =>
    ({ op, next }) =>
      observable((observer) => {
        const deadline = createDeadline(op.signal, options.totalSeconds);
        runAttempts(op, next, deadline.signal, options)
          .then(
            (result) => {
              observer.next(result);
              observer.complete();
            },
            (failure) => observer.error(toClientError(deadline.reason ?? failure, options.clock.now())),
          )
          .finally(deadline.clear);
        return deadline.abort;
      });
}

/** Throws the failure of the last attempt, or the signal's reason. */
async function runAttempts(
  op: Operation,
  next: Next,
  signal: AbortSignal,
  { attempts, totalSeconds, clock }: RetryOptions,
) {
  const endsAt = clock.now() + totalSeconds * 1_000;
  // The call goes without its signal, because `runAttempt` ends an attempt by unsubscribing.
  const isSafe = op.type !== 'mutation' || IDEMPOTENT_MUTATIONS.includes(op.path);
  const call = { ...(op.type === 'mutation' && isSafe ? freezeMutation(op) : op), signal: undefined };
  for (let attempt = 1; ; attempt++) {
    try {
      return await runAttempt(call, next, signal);
    } catch (failure) {
      if (signal.aborted || attempt >= attempts) throw failure;
      if (!isSafe && readStatus(failure as Failure) !== 429) throw failure;
      const delayMs = findRetryDelay(failure as Failure, attempt, clock);
      if (delayMs === undefined || clock.now() + delayMs > endsAt) throw failure;
      await clock.sleep(delayMs, signal);
    }
  }
}

/**
 * Fixes the Idempotency-Key and the input, so that every attempt sends the same bytes, even if the caller changes the input
 * meanwhile. The service rejects different bytes under the same key.
 *
 * The key is also why creates are not batched: a batch has one key for all of its calls, and would have to be retried as
 * a whole.
 */
function freezeMutation(op: Operation): Operation {
  const idempotencyKey = op.context.idempotencyKey ?? generateIdempotencyKey();
  const json = JSON.stringify(op.input);
  return {
    ...op,
    input: json === undefined ? undefined : JSON.parse(json),
    context: { ...op.context, idempotencyKey },
  };
}

/**
 * 128 random bits. Pages without TLS have no `crypto.randomUUID`, and React Native has no `crypto`. Random numbers do:
 * the key is no secret, and has to be unique only within one API key.
 */
function generateIdempotencyKey(): string {
  const bytes = new Uint8Array(16);
  if (typeof crypto === 'undefined') bytes.set(Array.from(bytes, () => Math.random() * 256));
  else crypto.getRandomValues(bytes);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Ends as soon as the signal is aborted, even if other calls of the same batch continue. */
function runAttempt(op: Operation, next: Next, signal: AbortSignal): Promise<Result> {
  let abort = () => {};
  return new Promise<Result>((resolve, reject) => {
    if (signal.aborted) throw readReason(signal);
    const subscription = next(op).subscribe({ next: resolve, error: reject });
    abort = () => {
      reject(readReason(signal));
      subscription.unsubscribe();
    };
    signal.addEventListener('abort', abort);
  }).finally(() => signal.removeEventListener('abort', abort));
}

/** Milliseconds to wait before the next attempt; undefined when a retry would fail in the same way. */
function findRetryDelay(failure: Failure, attempt: number, { now, random }: Clock): number | undefined {
  const isNetworkError = failure.cause instanceof NetworkError;
  // An earlier attempt of this create is still running: its response was lost or took too long.
  const isStillRunning = readBody(failure)?.code === 'idempotency_key_in_use';
  const isTransient = TRANSIENT_STATUSES.includes(readStatus(failure) ?? 0);
  if (!isNetworkError && !isStillRunning && !isTransient) return undefined;
  const retryAfterSeconds = readRetryAfter(failure, now());
  if (retryAfterSeconds !== undefined) return retryAfterSeconds * 1_000;
  return random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (attempt - 1));
}

/** A signal that aborts when the caller's signal does, when `abort` is called, or after the given time. */
function createDeadline(callerSignal: AbortSignal | null | undefined, seconds: number) {
  const controller = new AbortController();
  let reason: unknown;
  const end = (why: unknown) => {
    reason ??= why;
    controller.abort(reason);
  };
  const expire = () => end(createAbortError('TimeoutError', `No response within ${seconds} s`));
  const timer = setTimeout(expire, Math.min(seconds * 1_000, MAX_TIMER_MS));
  const unfollow = callerSignal ? onAbort(callerSignal, () => end(readReason(callerSignal))) : () => {};
  return {
    signal: controller.signal,
    /** Why it ended before the call; undefined if it has not ended. */
    get reason() {
      return reason;
    },
    abort: () => controller.abort(),
    clear() {
      clearTimeout(timer);
      unfollow();
    },
  };
}

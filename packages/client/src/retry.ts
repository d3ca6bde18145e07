import type { Operation, OperationLink, TRPCLink } from '@trpc/client';
import { observable } from '@trpc/server/observable';
import type { AppRouter } from '../../../src/router.js';
import { type Failure, readRetryAfter, readStatus, toClientError } from './api-error.js';
import { NetworkError } from './transport.js';

/** Time and chance, for tests to replace. */
export interface Clock {
  /** Unix milliseconds */
  now(): number;
  /** From 0 to 1, without 1 */
  random(): number;
  /** Rejects with the signal's reason as soon as it is aborted. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** The bounds of one call. */
export interface RetryOptions {
  /** How often it is sent at most */
  readonly attempts: number;
  /** How long it may take, with all waits */
  readonly totalSeconds: number;
  readonly clock: Clock;
}

/** The longest back-off before the second attempt, which doubles with each further one up to the cap. */
const BACKOFF_MS = 500;
const BACKOFF_CAP_MS = 8_000;
/** The longest that timers can wait */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** What passes by itself: refusals, outages, and faults of the service or of what stands before it. */
const TRANSIENT = [429, 500, 502, 503, 504];

type Next = Parameters<OperationLink<AppRouter>>[0]['next'];
type Answer = Parameters<NonNullable<Parameters<ReturnType<Next>['subscribe']>[0]['next']>>[0];

/**
 * Sends a call again when it failed in a way that passes: after Retry-After when the service names it, else after an
 * exponential back-off with full jitter. What would outlast the total time fails at once, with the answer there is.
 *
 * It repeats calls, not HTTP requests: of a batch, whose answer may hold a 503 beside results (207), nothing waits but
 * what failed, and calls that wait equally long share a batch again.
 *
 * tRPC's own retryLink does not see the failure when it chooses a delay, does not end a wait when the call is aborted,
 * and has no total time.
 */
export function retryLink(options: RetryOptions): TRPCLink<AppRouter> {
  return () =>
    ({ op, next }) =>
      observable((observer) => {
        const limit = limitTime(op.signal, options.totalSeconds);
        repeat(op, next, limit.signal, options)
          .then(
            (answer) => {
              observer.next(answer);
              observer.complete();
            },
            (failure) => observer.error(toClientError(failure, options.clock.now())),
          )
          .finally(limit.clear);
        return limit.abort;
      });
}

/** Throws the failure of the last attempt, or the reason of the signal. */
async function repeat(
  op: Operation,
  next: Next,
  signal: AbortSignal,
  { attempts, totalSeconds, clock }: RetryOptions,
) {
  const endsAt = clock.now() + totalSeconds * 1_000;
  // An attempt is ended by unsubscribing from it.
  const call = { ...pin(op), signal: undefined };
  for (let attempt = 1; ; attempt++) {
    try {
      return await send(call, next, signal);
    } catch (failure) {
      if (signal.aborted || attempt >= attempts) throw failure;
      const wait = findWait(failure as Failure, attempt, clock);
      if (wait === undefined || clock.now() + wait > endsAt) throw failure;
      await clock.sleep(wait, signal);
    }
  }
}

/**
 * A create is repeated under one key and with the same bytes, whatever the caller does to the object meanwhile: else
 * the service would take it for another one. That is also why creates are not batched: a batch has one Idempotency-Key
 * for all of its calls, and would have to be repeated as it was, with those that have succeeded.
 */
function pin(op: Operation): Operation {
  if (op.type !== 'mutation') return op;
  const idempotencyKey = op.context.idempotencyKey ?? createIdempotencyKey();
  const json = JSON.stringify(op.input);
  return {
    ...op,
    input: json === undefined ? undefined : JSON.parse(json),
    context: { ...op.context, idempotencyKey },
  };
}

/** 128 random bits. `crypto.randomUUID` is missing on pages without TLS. */
function createIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** One attempt. It ends with the signal, also when other calls of its batch go on. */
function send(op: Operation, next: Next, signal: AbortSignal): Promise<Answer> {
  let stop = () => {};
  return new Promise<Answer>((resolve, reject) => {
    signal.throwIfAborted();
    const attempt = next(op).subscribe({ next: resolve, error: reject });
    stop = () => {
      reject(signal.reason);
      attempt.unsubscribe();
    };
    signal.addEventListener('abort', stop);
  }).finally(() => signal.removeEventListener('abort', stop));
}

/** Milliseconds to wait before the next attempt; undefined when another one would fail in the same way. */
function findWait(failure: Failure, attempt: number, { now, random }: Clock): number | undefined {
  const isLost = failure.cause instanceof NetworkError;
  // The first attempt of this create still runs: its answer was lost, or has been waited for long enough.
  const isRunning = failure.data?.error.code === 'idempotency_key_in_use';
  if (!isLost && !isRunning && !TRANSIENT.includes(readStatus(failure) ?? 0)) return undefined;
  const retryAfterSeconds = readRetryAfter(failure, now());
  if (retryAfterSeconds !== undefined) return retryAfterSeconds * 1_000;
  return random() * Math.min(BACKOFF_CAP_MS, BACKOFF_MS * 2 ** (attempt - 1));
}

/** A signal that is aborted with another one, or by `abort`, or when the time is over. */
function limitTime(outer: AbortSignal | null | undefined, seconds: number) {
  const controller = new AbortController();
  const { signal } = controller;
  const follow = () => controller.abort(outer?.reason);
  const expire = () => controller.abort(new DOMException(`No answer within ${seconds} s`, 'TimeoutError'));
  const timer = setTimeout(expire, Math.min(seconds * 1_000, MAX_TIMER_MS));
  if (outer?.aborted) follow();
  outer?.addEventListener('abort', follow);
  return {
    signal,
    abort: () => controller.abort(),
    clear() {
      clearTimeout(timer);
      outer?.removeEventListener('abort', follow);
    },
  };
}

import type { Limiter, RateLimitResult, Subject } from '@animal-store/limits';
import type { FastifyRequest } from 'fastify';
import { type LimitsPer, limitsOf, type Plans } from '../contract/plans.js';
import { type ApiError, tooManyRequests } from '../errors/api-error.js';
import type { ApiKey } from '../keys/api-key.js';
import type { Bans } from '../keys/bans.js';
import type { Metrics } from '../monitoring/metrics.js';
import type { FreeForKey, KeyLimit } from '../operations/builder.js';
import { UNNAMED_CALL, type UsageCounter } from '../usage/counter.js';

/** The most whole days that a timer can wait: in JavaScript and elsewhere, it is limited to 2^31 milliseconds. */
const MAX_RETRY_AFTER_SECONDS = 24 * 86_400;

export interface LimitCheckOptions {
  readonly definition: Plans;
  readonly limiter: Limiter;
  /** Whether the keys of an owner share their counts */
  readonly limitsPer: LimitsPer;
  readonly bans: Pick<Bans, 'bannedUntil' | 'ban'>;
  /** The clock, in Unix milliseconds */
  readonly now: () => number;
}

export interface ChargeOptions extends LimitCheckOptions {
  /** Counts every request of a key, admitted or denied */
  readonly usage: Pick<UsageCounter, 'count'>;
  readonly metrics: Pick<Metrics, 'countDecision'>;
  /** Requests per minute from one address without a valid key */
  readonly anonymousPerMinute: number;
}

/**
 * Counts a request against the limits of its key, or else of its address, and in the metrics. Later steps find in
 * `request.admission` what is left of the limits.
 */
export async function charge(
  limited: Omit<LimitedRequest, 'apiKey' | 'address'>,
  request: FastifyRequest,
  options: ChargeOptions,
): Promise<LimitCheck> {
  const { admission } = request;
  const { apiKey } = admission;
  const { cost, freeForKey, countsTowardsBan } = limited;
  const address = () => toAddress(request, options);
  const check = await checkLimits({ apiKey, address, cost, freeForKey, countsTowardsBan }, options);
  // The limiter counts in the store's windows, which have these names.
  admission.limits = check.result.windows as readonly KeyLimit[];
  admission.bannedUntil = check.bannedUntil;
  options.metrics.countDecision(check.error?.code, apiKey?.plan);
  return check;
}

/**
 * Takes the rest of the cost of a request whose operation only its body names, and counts the usage. The request has
 * already counted as one, and still does if the rest is denied.
 *
 * @returns undefined if there is no rest
 */
export async function chargeRest(
  request: FastifyRequest,
  options: ChargeOptions,
): Promise<LimitCheck | undefined> {
  const cost = request.admission.target.cost - 1;
  const limited = { cost, freeForKey: undefined, countsTowardsBan: true };
  const check = cost > 0 ? await charge(limited, request, options) : undefined;
  countUsage(request, options, check?.error === undefined ? 'requests' : 'denied');
  return check;
}

/**
 * Each call of a batch counts for its operation; a batch that is too large runs none. A denied request whose body would
 * have named the operation counts as UNNAMED_CALL, because that body is not read.
 */
export function countUsage(
  { admission }: FastifyRequest,
  { usage }: ChargeOptions,
  outcome: 'requests' | 'denied',
): void {
  const { apiKey, target } = admission;
  const { calls, cost } = target;
  const counted = calls.length === 0 && outcome === 'denied' ? [UNNAMED_CALL] : calls;
  if (apiKey !== undefined && calls.length <= cost) usage.count(apiKey.id, counted, outcome);
}

export function toAddress(
  { addressId }: FastifyRequest,
  { anonymousPerMinute }: Pick<ChargeOptions, 'anonymousPerMinute'>,
): Subject {
  return { kind: 'address', id: addressId, limits: { perMinute: anonymousPerMinute } };
}

/** A request, or a batch, as the limits see it. */
export interface LimitedRequest {
  /** Undefined without a valid key: then `address` is limited */
  readonly apiKey: ApiKey | undefined;
  readonly address: () => Subject;
  /** 1, or the number of calls of a batch */
  readonly cost: number;
  /** Undefined for requests that cost the key something */
  readonly freeForKey: FreeForKey | undefined;
  /** Whether a denial counts towards a ban */
  readonly countsTowardsBan: boolean;
}

export interface LimitCheck {
  readonly result: RateLimitResult;
  /** Until when the key is banned, in Unix milliseconds; undefined if it is not */
  readonly bannedUntil?: number | undefined;
  /** Why the request is denied */
  readonly error?: ApiError;
}

/** Counts a request against the limits of its key or address, unless the key is banned. */
export async function checkLimits(
  request: LimitedRequest,
  { definition, limiter, limitsPer, bans, now }: LimitCheckOptions,
): Promise<LimitCheck> {
  const { apiKey, address, cost, countsTowardsBan } = request;
  const subject = apiKey === undefined ? address() : toSubject(apiKey, limitsPer, definition);
  // Free requests and denials count for each key alone, even if keys share limits.
  const own = apiKey === undefined ? subject : toSubject(apiKey, 'key', definition);
  const bannedUntil = apiKey && bans.bannedUntil(apiKey);
  if (apiKey !== undefined && request.freeForKey === 'always')
    return { result: await limiter.read(subject, cost), bannedUntil };
  if (apiKey !== undefined && request.freeForKey === 'windowed') {
    // The key's own window of free requests, which allows as many as an address without a key has.
    const free = { ...own, id: `free:${own.id}`, limits: address().limits };
    const [ofFree, ofKey] = await Promise.all([limiter.consume(free, cost), limiter.read(subject, cost)]);
    if (ofFree.isAllowed) return { result: ofKey, bannedUntil };
    return { result: ofFree, error: toDenial(ofFree) };
  }
  if (apiKey !== undefined && bannedUntil !== undefined) {
    // Another node may have begun the ban. Denials from before the ban must not lead to another if it is lifted at once.
    limiter.resetDenied(own);
    const result = await limiter.read(subject, cost);
    await endOfTick();
    // Whichever ends later: when a ban ends, the window may still be full.
    const banSeconds = Math.min(Math.ceil((bannedUntil - now()) / 1000), MAX_RETRY_AFTER_SECONDS);
    const seconds = Math.max(banSeconds, result.retryAfterSeconds ?? 1);
    return { result, bannedUntil, error: tooManyRequests('api_key_banned', seconds) };
  }
  const decision = limiter.consume(subject, cost);
  const result = decision instanceof Promise ? await decision : decision;
  if (result.isAllowed) return { result };
  if (countsTowardsBan && apiKey !== undefined && bans.bannedUntil(apiKey) === undefined) {
    await limiter.countDenied(own, cost, () => bans.ban(apiKey));
  }
  if (!(decision instanceof Promise)) await endOfTick();
  return { result, error: toDenial(result) };
}

function toDenial({ retryAfterSeconds }: RateLimitResult): ApiError {
  return tooManyRequests('rate_limit_exceeded', retryAfterSeconds ?? 1);
}

/**
 * The subject that a request of a key counts against. Keys that share a count are each held to the limits of their own plan,
 * and the requests of one count for all.
 */
export function toSubject(apiKey: ApiKey, limitsPer: LimitsPer, plans: Plans): Subject {
  const { id, owner } = apiKey;
  const isShared = limitsPer === 'owner' && owner !== null;
  // A Redis Cluster would take braces for a hash tag.
  const limits = limitsOf(plans, apiKey);
  return { kind: 'key', id: isShared ? `owner:${encodeURIComponent(owner)}` : id, limits };
}

let tick: Promise<void> | undefined;

/**
 * Resolves at the end of this event-loop tick. Writing the denials of a tick one after the other halves the cost of each
 * (62 → 32 µs of CPU), although each is a write of its own.
 */
function endOfTick(): Promise<void> {
  tick ??= new Promise((resolve) => {
    setImmediate(() => {
      tick = undefined;
      resolve();
    });
  });
  return tick;
}

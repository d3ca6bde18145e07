import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Subject } from '../limits/limiter.js';
import type { Metrics } from '../monitoring/metrics.js';
import type { RequestTarget } from '../operations/builder.js';
import { UNNAMED_CALL, type UsageCounter } from '../usage/counter.js';
import { type AnnounceOptions, announceDeprecation } from './announcements.js';
import {
  checkLimits,
  type LimitCheck,
  type LimitCheckOptions,
  type LimitedRequest,
  limitHeaders,
} from './limit-check.js';

export interface ChargeOptions extends LimitCheckOptions {
  /** Counts every request of a key, admitted or denied */
  readonly usage: Pick<UsageCounter, 'count'>;
  readonly metrics: Pick<Metrics, 'countDecision'>;
  /** Requests per minute from one address without a valid key */
  readonly anonymousPerMinute: number;
}

/**
 * Counts a request against the limits of its key, or else of its address. Sets the headers of the limits, and counts usage
 * and metrics.
 */
export async function charge(
  limited: Omit<LimitedRequest, 'apiKey' | 'address'>,
  request: FastifyRequest,
  reply: FastifyReply,
  options: ChargeOptions,
): Promise<LimitCheck> {
  const { admission } = request;
  const { apiKey } = admission;
  const { cost, isFreeForKey, countsTowardsBan } = limited;
  const address = () => toAddress(request, options);
  const check = await checkLimits({ apiKey, address, cost, isFreeForKey, countsTowardsBan }, options);
  reply.headers(limitHeaders(check.result));
  admission.limits = check.result.windows;
  admission.bannedUntil = check.bannedUntil;
  options.metrics.countDecision(check.error?.code, apiKey?.plan);
  return check;
}

/**
 * For a request whose operation only the body names. It has counted as one request so far; this takes the rest of its cost.
 * The one stays counted if the rest is denied. Counts the usage, and announces a deprecation.
 *
 * @throws ApiError rate_limit_exceeded, api_key_banned
 */
export async function chargeBody(
  target: RequestTarget,
  request: FastifyRequest,
  reply: FastifyReply,
  options: ChargeOptions & AnnounceOptions,
): Promise<void> {
  request.admission.target = target;
  const limited = { cost: target.cost - 1, isFreeForKey: false, countsTowardsBan: true };
  const { error } = limited.cost > 0 ? await charge(limited, request, reply, options) : {};
  countUsage(request, options, error === undefined ? 'requests' : 'denied');
  announceDeprecation(request, reply, options);
  if (error !== undefined) throw error;
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

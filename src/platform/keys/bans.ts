import { LRUCache } from 'lru-cache';
import { FIRST_BAN_SECONDS, limitsOf } from '../contract/plans.js';
import { KEY_TTL_MS } from './authenticator.js';
import type { ApiKey, KeyStore } from './store.js';

/** Of a ban that the service starts; one by the operator may last longer. */
export const MAX_BAN_SECONDS = 86_400;
/** A ban that starts within this time after the end of the previous one lasts twice as long. */
const DOUBLING_WINDOW_MS = 86_400_000;
/** Denied requests are counted in a window that starts with the first of them. */
const DENIED_WINDOW_MS = 60_000;
/** How long to wait before a ban that could not be stored is tried again. */
const RETRY_DELAY_MS = 1_000;
/** The most keys whose denied requests are counted at once, about 10 MB. */
const MAX_KEYS = 50_000;

/** The state of a key that this node keeps in addition to the key's row. */
interface BanState {
  denied: number;
  /** By performance.now, which cannot be set */
  deniedEndsAt: number;
  bannedUntilMs: number;
  /** Until when (by performance.now) this node's own ban is enforced, whatever the row says */
  overridesRowUntil: number;
}

export interface BansOptions {
  readonly store: Pick<KeyStore, 'ban'>;
  /** Unix milliseconds */
  readonly now: () => number;
  readonly log: {
    info(details: object, message: string): void;
    warn(details: object, message: string): void;
  };
}

export type Bans = ReturnType<typeof createBans>;

/**
 * Bans keys that keep sending while they are over their limit.
 *
 * A ban is two columns of the key's row, whose changes every node asks for. The node that starts a ban enforces it
 * from memory at once, until the row has it and every older copy of the row has expired.
 */
export function createBans({ store, now, log }: BansOptions) {
  const states = new LRUCache<string, BanState>({ max: MAX_KEYS });
  let isClosed = false;

  /** The end of a key's ban in Unix milliseconds; undefined while it is not banned. */
  const bannedUntil = ({ id, bannedUntil: stored }: ApiKey): number | undefined => {
    const state = states.get(id);
    if (stored === null && state === undefined) return undefined;
    const isOwn = state !== undefined && performance.now() < state.overridesRowUntil;
    const untilMs = Math.max(isOwn ? state.bannedUntilMs : 0, stored?.getTime() ?? 0);
    return untilMs > now() ? untilMs : undefined;
  };
  /** Retries until the ban is stored or over: while the database is unavailable, it holds on this node only. */
  const save = async (keyId: string, state: BanState, startsAt: Date, seconds: number, isRetry = false) => {
    if (isClosed || now() >= state.bannedUntilMs) return;
    try {
      await store.ban(keyId, startsAt, seconds);
      state.overridesRowUntil = performance.now() + KEY_TTL_MS;
    } catch (err) {
      if (!isRetry) log.warn({ err, keyId }, 'a ban is not stored yet: it holds on this node only');
      setTimeout(save, RETRY_DELAY_MS, keyId, state, startsAt, seconds, true).unref();
    }
  };
  return {
    bannedUntil,
    /**
     * Counts a denied request by its cost. Bans the key when as many are denied within a minute as it is allowed per
     * minute.
     */
    countDenied(apiKey: ApiKey, cost: number): void {
      // Requests that were already under way when the ban began are denied too, but start no second ban.
      if (bannedUntil(apiKey) !== undefined) return;
      const { id } = apiKey;
      const state = states.get(id) ?? { denied: 0, deniedEndsAt: 0, bannedUntilMs: 0, overridesRowUntil: 0 };
      states.set(id, state);
      if (performance.now() >= state.deniedEndsAt) {
        state.denied = 0;
        state.deniedEndsAt = performance.now() + DENIED_WINDOW_MS;
      }
      state.denied += cost;
      if (state.denied < limitsOf(apiKey).perMinute) return;
      const startsAt = now();
      const seconds = nextBanSeconds(apiKey, startsAt);
      state.denied = 0;
      state.bannedUntilMs = startsAt + seconds * 1000;
      state.overridesRowUntil = Number.POSITIVE_INFINITY;
      log.info({ keyId: id, seconds }, 'a key is banned: too many of its requests were denied');
      void save(id, state, new Date(startsAt), seconds);
    },
    /** Stops trying to store bans; call it before the database is closed. */
    close() {
      isClosed = true;
    },
  };
}

/** How long a ban of the key would last if it started at `now`, in Unix milliseconds. */
export function nextBanSeconds(
  { bannedUntil, banSeconds }: Pick<ApiKey, 'bannedUntil' | 'banSeconds'>,
  now: number,
): number {
  const isRepeated = bannedUntil !== null && now - bannedUntil.getTime() < DOUBLING_WINDOW_MS;
  if (!isRepeated || banSeconds === null) return FIRST_BAN_SECONDS;
  return Math.min(banSeconds * 2, MAX_BAN_SECONDS);
}

import { LRUCache } from 'lru-cache';
import { nextBanSeconds } from '../contract/bans.js';
import type { ApiKey } from './api-key.js';
import { KEY_TTL_MS } from './known-keys.js';
import type { KeyStore } from './store.js';

/** How long to wait before a ban that could not be stored is tried again. */
const RETRY_DELAY_MS = 1_000;
/** The most keys whose bans began here and may still differ from their rows. */
const MAX_KEYS = 50_000;

/** A ban that this node began. The node enforces it by itself until its copy of the key's row has it, too. */
interface OwnBan {
  readonly bannedUntilMs: number;
  /** By performance.now, which cannot be set */
  readonly beganAt: number;
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
 * Bans keys that keep sending while they are over their limit, by the rule of contract/bans.ts. The limiter counts the denials.
 *
 * A ban is two columns of the key's row, and every node asks for changes of the row. The node that starts a ban enforces
 * it from memory at once, until the row has it and every older copy of the row has expired. The clock of the database
 * decides when the ban ends.
 */
export function createBans({ store, now, log }: BansOptions) {
  // With `max` instead of sizes, the cache would allocate memory for all keys now.
  const states = new LRUCache<string, OwnBan>({ maxSize: MAX_KEYS, sizeCalculation: () => 1 });
  let isClosed = false;

  /** The end of a key's ban in Unix milliseconds; undefined while it is not banned. */
  const bannedUntil = ({ id, bannedUntil: stored }: ApiKey): number | undefined => {
    const state = states.get(id);
    if (stored === null && state === undefined) return undefined;
    const isOwn = state !== undefined && performance.now() < state.overridesRowUntil;
    const untilMs = Math.max(isOwn ? state.bannedUntilMs : 0, stored?.getTime() ?? 0);
    return untilMs > now() ? untilMs : undefined;
  };
  /** Retries until the ban is stored or over. While the database is unavailable, the ban holds on this node only. */
  const save = async (apiKey: ApiKey, state: OwnBan, seconds: number, isRetry = false) => {
    const { id, name } = apiKey;
    const agoMs = performance.now() - state.beganAt;
    if (isClosed || agoMs >= seconds * 1000) return;
    try {
      await store.ban(id, seconds, agoMs);
      state.overridesRowUntil = performance.now() + KEY_TTL_MS;
    } catch (err) {
      const details = { err, keyId: id, keyName: name };
      if (!isRetry) log.warn(details, 'a ban is not stored yet: it holds on this node only');
      setTimeout(save, RETRY_DELAY_MS, apiKey, state, seconds, true).unref();
    }
  };
  return {
    bannedUntil,
    /** Bans a key that is not banned: requests that were under way when a ban began start no second ban. */
    ban(apiKey: ApiKey): void {
      if (bannedUntil(apiKey) !== undefined) return;
      const { id, name } = apiKey;
      const seconds = nextBanSeconds(apiKey, now());
      const state = {
        bannedUntilMs: now() + seconds * 1000,
        beganAt: performance.now(),
        overridesRowUntil: Number.POSITIVE_INFINITY,
      };
      states.set(id, state);
      const details = { keyId: id, keyName: name, seconds };
      log.info(details, 'a key is banned: too many of its requests were denied');
      void save(apiKey, state, seconds);
    },
    /** Stops trying to store bans; call it before the database is closed. */
    close() {
      isClosed = true;
    },
  };
}

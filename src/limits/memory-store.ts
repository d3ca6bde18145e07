import { LRUCache } from 'lru-cache';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { nextBanMs } from './bans.js';
import { type TakeOptions, taggedKey, Verdict } from './verdict.js';
import type { Reading, Window } from './windows.js';

const refusalWindowMs = 60_000;

interface Taken {
  count: number;
  endsAtMs: number;
}

/** All that a node knows of one subject. */
interface Account {
  minute: Taken;
  day: Taken;
  ban: { endsAtMs: number; lengthMs: number };
  pardons: number;
  /** Requests that this node refused in the minute that began with the first of them. */
  refused: Taken;
  /** When Redis was last heard on this subject. */
  heardAtMs: number;
  /** Which of Redis's outages was the last then. */
  outage: number;
  /** The order of this node's own ban among the questions it put to Redis. */
  bannedAt: number;
}

/**
 * rate-limiter-flexible's limiter in memory, with a store of our own: the library's knows one window to a limiter,
 * counts what it refuses, has no bound, a timer to every key and no clock to inject.
 *
 * It holds the windows in the memory of this process: without Redis the whole truth; beside Redis what that said
 * last, from which this node refuses without asking and with which it goes on alone.
 *
 * Bounded by `most` subjects; beyond it the one not seen for longest is forgotten, its counts included. No timers:
 * what has ended is overwritten or falls out.
 */
export class MemoryLimiter extends RateLimiterMemory {
  readonly #accounts: LRUCache<string, Account>;
  readonly #clock: () => number;
  #questions = 0;

  constructor(keyPrefix: string, most: number, clock: () => number) {
    super({ keyPrefix, points: 0, duration: 0 });
    this.#accounts = new LRUCache({ max: most });
    this.#clock = clock;
  }

  override getKey(id: string): string {
    return taggedKey(this.keyPrefix, id);
  }

  /** Counts in every window, or in none. Resolves and rejects with a `Verdict`. A cost of 0 only reads. */
  override async consume(id: string, cost: number, { windows }: TakeOptions): Promise<Verdict> {
    const account = this.#account(this.getKey(id));
    const nowMs = this.#clock();
    const reading = readingOf(account, windows, cost, nowMs);
    if (!reading.admitted) throw new Verdict(reading, cost);
    if (cost === 0) return new Verdict(reading, cost);
    const taken = windows.map(({ name, lengthMs }) => charge(account[name], lengthMs, cost, nowMs));
    return new Verdict({ ...reading, windows: taken }, cost);
  }

  /** The refusal that is certain from what was heard from Redis at most `maxAgeMs` ago, or null: then ask. */
  knownRefusal(id: string, windows: Window[], cost: number, maxAgeMs: number): Reading | null {
    const account = this.#accounts.get(this.getKey(id));
    const nowMs = this.#clock();
    if (!account || Math.abs(nowMs - account.heardAtMs) > maxAgeMs) return null;
    const reading = readingOf(account, windows, cost, nowMs);
    return reading.admitted ? null : reading;
  }

  /**
   * Counts a refused request of that cost. True when it is the one that bans: as many refused as `perMinute`
   * within a minute, which starts with the first of them. The ban then holds here at once.
   */
  countRefusal(id: string, cost: number, perMinute: number): boolean {
    const account = this.#account(this.getKey(id));
    const nowMs = this.#clock();
    if (account.ban.endsAtMs > nowMs) return false;
    charge(account.refused, refusalWindowMs, cost, nowMs);
    if (account.refused.count < perMinute) return false;
    const { endsAtMs, lengthMs } = account.ban;
    this.#ban(account, nextBanMs({ leftMs: endsAtMs - nowMs, lengthMs }));
    return true;
  }

  /** Takes over a ban as Redis keeps it. */
  hearBan(storeKey: string, leftMs: number, lengthMs: number): void {
    const account = this.#account(storeKey);
    this.#ban(account, leftMs);
    account.ban.lengthMs = lengthMs;
  }

  /** Lifts the ban and forgets its length and the refusals counted. `pardons` is how often Redis says that was done. */
  pardon(id: string, pardons = 0): void {
    const account = this.#accounts.get(this.getKey(id));
    if (!account) return;
    account.pardons = pardons;
    account.ban = { endsAtMs: 0, lengthMs: 0 };
    account.refused = notTaken();
  }

  /** A place in the order of questions to Redis, to be given back with the answer. */
  question(): number {
    this.#questions += 1;
    return this.#questions;
  }

  /** Notes what Redis answered to a question, `outage` being the number of the last outage. */
  hear(storeKey: string, windows: Window[], reading: Reading, question: number, outage: number): void {
    const account = this.#account(storeKey);
    const nowMs = this.#clock();
    for (const [index, window] of windows.entries()) {
      const taken = reading.windows[index];
      if (taken) account[window.name] = { count: taken.count, endsAtMs: nowMs + taken.leftMs };
    }
    // An answer that was on its way when this node banned the key knows nothing of the ban.
    if (question > account.bannedAt) {
      account.ban = { endsAtMs: nowMs + reading.banLeftMs, lengthMs: reading.banLengthMs };
    }
    if (reading.banLeftMs > 0 || reading.pardons !== account.pardons) account.refused = notTaken();
    account.pardons = reading.pardons;
    account.heardAtMs = nowMs;
    account.outage = outage;
  }

  /**
   * What this node knows and Redis may have lost since they last spoke, because there was an outage in between;
   * null when there was none.
   */
  unheard(storeKey: string, windows: Window[], outage: number): Reading | null {
    const account = this.#accounts.get(storeKey);
    if (!account || account.outage === outage) return null;
    return readingOf(account, windows, 0, this.#clock());
  }

  #account(storeKey: string): Account {
    const known = this.#accounts.get(storeKey);
    if (known) return known;
    const account = newAccount();
    this.#accounts.set(storeKey, account);
    return account;
  }

  #ban(account: Account, lengthMs: number): void {
    account.ban = { endsAtMs: this.#clock() + lengthMs, lengthMs };
    account.refused = notTaken();
    account.bannedAt = this.#questions;
  }
}

function newAccount(): Account {
  return {
    minute: notTaken(),
    day: notTaken(),
    ban: { endsAtMs: 0, lengthMs: 0 },
    pardons: 0,
    refused: notTaken(),
    heardAtMs: Number.NEGATIVE_INFINITY,
    outage: 0,
    bannedAt: 0,
  };
}

function notTaken(): Taken {
  return { count: 0, endsAtMs: 0 };
}

function readingOf(account: Account, windows: Window[], cost: number, nowMs: number): Reading {
  const taken = windows.map(({ name, lengthMs }) => {
    const leftMs = leftOf(account[name], lengthMs, nowMs);
    return { count: leftMs > 0 ? account[name].count : 0, leftMs };
  });
  const banLeftMs = account.ban.endsAtMs - nowMs;
  const fits = windows.every((window, index) => (taken[index]?.count ?? 0) + cost <= window.limit);
  return {
    admitted: fits && banLeftMs <= 0,
    banLeftMs,
    banLengthMs: account.ban.lengthMs,
    pardons: account.pardons,
    windows: taken,
  };
}

/** Adds to a window, starting it anew when it has ended. */
function charge(taken: Taken, lengthMs: number, cost: number, nowMs: number): Reading['windows'][number] {
  if (leftOf(taken, lengthMs, nowMs) === 0) {
    taken.count = 0;
    taken.endsAtMs = nowMs + lengthMs;
  }
  taken.count += cost;
  return { count: taken.count, leftMs: taken.endsAtMs - nowMs };
}

/** A window with more time left than it is long has ended too: a clock that is set back must not prolong it. */
function leftOf(taken: Taken, lengthMs: number, nowMs: number): number {
  const leftMs = taken.endsAtMs - nowMs;
  return leftMs > 0 && leftMs <= lengthMs ? leftMs : 0;
}

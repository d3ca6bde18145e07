import DataLoader from 'dataloader';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { bans } from './bans.js';
import type { RedisLink } from './circuit-breaker.js';
import type { MemoryLimiter } from './memory-store.js';
import type { Client } from './redis-client.js';
import { type TakeOptions, taggedKey, Verdict } from './verdict.js';
import type { Reading, Window } from './windows.js';

/**
 * rate-limiter-flexible's limiter in Redis, with one script of our own for all windows and the ban: the library's
 * union of limiters takes a round trip to each window, and takes from the others when one refuses. What the
 * library does is the flow of `consume`: it tells a refusal from a failure and turns to the insurance on a failure.
 *
 * The memory beside it is told every answer, and as the insurance goes on from what it was told. When Redis is back,
 * the next request of a subject gives back what this node counted or knew, so that neither a stall nor a restart
 * without persistence is in the caller's favour.
 */
export class RedisLimiter extends RateLimiterRedis {
  readonly #link: RedisLink;
  readonly #memory: MemoryLimiter;
  /** What is asked within one turn of the event loop is asked together. */
  readonly #takes = new DataLoader<Take, Reading>((takes) => this.#takeTogether(takes), {
    cache: false,
    batchScheduleFn: setImmediate,
  });

  constructor(client: Client, link: RedisLink, memory: MemoryLimiter) {
    super({
      storeClient: client,
      keyPrefix: memory.keyPrefix,
      points: 0,
      duration: 0,
      insuranceLimiter: memory,
    });
    this.#link = link;
    this.#memory = memory;
  }

  override getKey(id: string): string {
    return taggedKey(this.keyPrefix, id);
  }

  /** The library's place for the store's work; `_getRateLimiterRes` is then given what this resolves with. */
  _upsert(
    storeKey: string,
    cost: number,
    _lengthMs: number,
    _force: boolean,
    { windows }: TakeOptions,
  ): Promise<Reading> {
    return this.#takes.load({ storeKey, cost, windows });
  }

  async #takeTogether(takes: readonly Take[]): Promise<(Reading | Error)[]> {
    const readings = new Map<Take, Reading | Error>();
    const groups = groupBySubject(takes);
    await Promise.all(groups.map((group) => this.#takeGroup(group, readings)));
    return takes.map((take) => readings.get(take) as Reading | Error);
  }

  /**
   * One subject's requests of a turn are taken as one, in their order. When they do not all fit nothing has been taken,
   * and each is asked for alone: those that fit are then admitted, and exactly those.
   */
  async #takeGroup(group: readonly Take[], readings: Map<Take, Reading | Error>): Promise<void> {
    const [{ storeKey, windows }] = group as [Take];
    try {
      const cost = group.reduce((sum, take) => sum + take.cost, 0);
      const reading = await this.#ask({ storeKey, cost, windows });
      if (group.length > 1 && !reading.admitted) {
        const alone = await Promise.all(group.map((take) => this.#ask(take)));
        for (const [index, take] of group.entries()) readings.set(take, alone[index] as Reading);
        return;
      }
      let later = cost;
      for (const take of group) {
        later -= take.cost;
        readings.set(take, later === 0 ? reading : before(reading, later));
      }
    } catch (error) {
      for (const take of group) readings.set(take, error as Error);
    }
  }

  async #ask({ storeKey, cost, windows }: Take): Promise<Reading> {
    const { recoveries } = this.#link;
    const question = this.#memory.question();
    const heard = this.#memory.unheard(storeKey, windows, recoveries);
    const values = takeValues(windows, cost, heard);
    const answer = await this.#link.run(storeKey, (client) => client.limitsTake(storeKey, ...values));
    const reading = readingOf(answer);
    this.#memory.hear(storeKey, windows, reading, question, recoveries);
    return reading;
  }

  _getRateLimiterRes(_storeKey: string, cost: number, reading: Reading): Verdict {
    return new Verdict(reading, cost);
  }

  /** Makes a ban that this node's memory has begun hold on every node. Does not reject. */
  async ban(id: string): Promise<void> {
    const storeKey = this.getKey(id);
    const values = [bans.firstMs, bans.longestMs, bans.rememberedMs];
    try {
      const answer = await this.#link.run(storeKey, (client) => client.limitsBan(storeKey, ...values));
      const [leftMs = 0, lengthMs = 0] = answer;
      this.#memory.hearBan(storeKey, leftMs, lengthMs);
    } catch {
      // The link has opened the circuit and said so; the ban holds here, and Redis is told of it when it is back.
    }
  }

  /** Lifts a ban on every node. Rejects when Redis cannot be reached. */
  async pardon(id: string): Promise<void> {
    const storeKey = this.getKey(id);
    const pardons = await this.#link.run(storeKey, (client) =>
      client.limitsPardon(storeKey, bans.rememberedMs),
    );
    this.#memory.pardon(id, pardons);
  }
}

/** A request for one subject */
interface Take {
  readonly storeKey: string;
  readonly cost: number;
  readonly windows: Window[];
}

/** Those of one subject under the same limits; one that only reads stays alone. */
function groupBySubject(takes: readonly Take[]): Take[][] {
  const groups = new Map<string | Take, Take[]>();
  for (const take of takes) {
    const group = groups.get(take.storeKey);
    if (group === undefined) groups.set(take.storeKey, [take]);
    else if (take.cost > 0 && group[0]?.cost !== 0 && group[0]?.windows === take.windows) group.push(take);
    else groups.set(take, [take]);
  }
  return [...groups.values()];
}

/** What stood in the windows before the last so many requests of those that were admitted together. */
function before(reading: Reading, requests: number): Reading {
  const windows = reading.windows.map(({ count, leftMs }) => ({ count: count - requests, leftMs }));
  return { ...reading, windows };
}

/** What the link tries until Redis is back: the very script, writing, in the slot of the key that failed. */
export function probeWindows(client: Client, key: string): Promise<unknown> {
  const window: Window = { name: 'minute', lengthMs: 1_000, limit: Number.MAX_SAFE_INTEGER };
  return client.limitsTake(`${key}:probe`, ...takeValues([window], 1, null));
}

function takeValues(windows: Window[], cost: number, heard: Reading | null): (string | number)[] {
  const values: (string | number)[] = [cost, bans.rememberedMs, windows.length];
  for (const { name, limit, lengthMs } of windows) values.push(name, limit, lengthMs);
  if (!heard) return values;
  values.push(heard.banLeftMs, heard.banLengthMs, heard.pardons);
  for (const { count, leftMs } of heard.windows) values.push(count, leftMs);
  return values;
}

function readingOf(answer: number[]): Reading {
  const [admitted, banLeftMs = 0, banLengthMs = 0, pardons = 0, ...taken] = answer;
  const windows: Reading['windows'] = [];
  for (let index = 0; index < taken.length; index += 2) {
    windows.push({ count: taken[index] ?? 0, leftMs: taken[index + 1] ?? 0 });
  }
  return { admitted: admitted === 1, banLeftMs, banLengthMs, pardons, windows };
}

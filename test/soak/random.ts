import { randomInt } from 'node:crypto';

/** Decides what the soak sends: SOAK_SEED=1234 sends the same again. What a fault meets and which orders are open depends on time. */
export const SEED = Number(process.env.SOAK_SEED || randomInt(2 ** 32));

type Random = () => number;

/** Numbers from 0 up to 1, as from Math.random: mulberry32 (https://github.com/bryc/code/blob/master/jshash/PRNGs.md). */
function createRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** For what is sent */
export const random = createRandom(SEED);
/** For faults and lost connections, which draw when time has come: they would disturb what is sent. */
export const randomOfFaults = createRandom(SEED + 1);

/** Both bounds are included. */
export function randomInteger(min: number, max: number, from: Random = random): number {
  return min + Math.floor(from() * (max - min + 1));
}

export function pick<T>(items: readonly T[], from: Random = random): T {
  return items[randomInteger(0, items.length - 1, from)] as T;
}

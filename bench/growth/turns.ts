import { median } from '../table.js';

const CALLS = 20;

/**
 * The median time of each call in microseconds; Infinity for one that has failed, which is not tried again. They take
 * turns in rounds, so that a drift of the machine hits all alike; the first rounds warm up, in which PostgreSQL also
 * decides how it plans a named statement from then on.
 */
export async function timeInTurns(
  calls: ReadonlyMap<string, () => Promise<unknown>>,
  rounds: number,
): Promise<Map<string, number>> {
  const times = new Map<string, number[]>([...calls.keys()].map((name) => [name, []]));
  for (let round = -2; round < rounds; round += 1) {
    for (const [name, call] of calls) {
      if (times.get(name)?.includes(Number.POSITIVE_INFINITY)) continue;
      try {
        const measured = await timeCalls(call);
        if (round >= 0) times.get(name)?.push(...measured);
      } catch (error) {
        process.stdout.write(`${name}: ${(error as Error).message}\n`);
        times.set(name, [Number.POSITIVE_INFINITY]);
      }
    }
  }
  return new Map([...times].map(([name, values]) => [name, median(values)]));
}

async function timeCalls(call: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < CALLS; n += 1) {
    const startedAt = performance.now();
    await call();
    times.push((performance.now() - startedAt) * 1000);
  }
  return times;
}

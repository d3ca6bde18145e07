import { median } from '../table.js';

const CALLS_PER_ROUND = 20;
/** PostgreSQL chooses between a generic and a custom plan after the first executions of a named statement. */
const WARM_UP_ROUNDS = 2;

/**
 * The median time of each call in microseconds; Infinity for one that failed, which is not tried again. Every round
 * times all calls, so that a change in the machine's speed affects them alike.
 */
export async function timeAlternately(
  calls: ReadonlyMap<string, () => Promise<unknown>>,
  rounds: number,
): Promise<Map<string, number>> {
  const times = new Map<string, number[]>([...calls.keys()].map((name) => [name, []]));
  for (let round = 1 - WARM_UP_ROUNDS; round <= rounds; round += 1) {
    for (const [name, call] of calls) {
      if (times.get(name)?.includes(Number.POSITIVE_INFINITY)) continue;
      try {
        const measured = await timeCalls(call);
        if (round > 0) times.get(name)?.push(...measured);
      } catch (error) {
        process.stderr.write(`${name}: ${(error as Error).message}\n`);
        times.set(name, [Number.POSITIVE_INFINITY]);
      }
    }
  }
  return new Map([...times].map(([name, values]) => [name, median(values)]));
}

async function timeCalls(call: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < CALLS_PER_ROUND; n += 1) {
    const startedAt = performance.now();
    await call();
    times.push((performance.now() - startedAt) * 1000);
  }
  return times;
}

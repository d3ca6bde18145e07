import { definition } from '#operations-under-test';

/** Linear work for four times as much text takes four times as long, quadratic work sixteen times. */
const STEP = 4;
const MAX_GROWTH = 8;
const SIZE = 64 * 1024;
/** In milliseconds of CPU: less is the noise of a process that does other things, too. */
const NOISE_MS = 25;
/** No noise is as much twice in a row; a collection of all garbage may be, once. */
const CERTAIN_MS = 500;
/** The least of several is what the work itself takes. */
const ATTEMPTS = 8;

/**
 * How the work for a text has grown with its length, if that is more than in proportion; undefined if it is not. What is
 * compared is the CPU of this process, which does not depend on what else the machine does.
 *
 * @param work takes the length of the text, in bytes
 */
export async function findGrowth(work: (size: number) => unknown): Promise<string | undefined> {
  const after = await measure(work, SIZE);
  if (after <= NOISE_MS) return undefined;
  const before = await measure(work, SIZE / STEP);
  if (after <= before * MAX_GROWTH + NOISE_MS) return undefined;
  return `${before.toFixed(1)} ms for ${SIZE / STEP} bytes, ${after.toFixed(1)} ms for ${SIZE}`;
}

async function measure(work: (size: number) => unknown, size: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS && least > NOISE_MS; attempt += 1) {
    const start = process.cpuUsage();
    await work(size);
    const { user, system } = process.cpuUsage(start);
    const cost = (user + system) / 1000;
    least = Math.min(least, cost);
    if (attempt > 0 && least > CERTAIN_MS) return least;
  }
  return least;
}

/** A text of a length: as many units as fit between a beginning and an end. */
export type Filler = readonly [beginning: string, unit: string, end: string];

export function fill([beginning, unit, end]: Filler, size: number): string {
  return beginning + unit.repeat((size - beginning.length - end.length) / unit.length) + end;
}

/** What patterns and parsers of headers have been slow with. */
export const FILLERS: readonly Filler[] = [
  ['a=', ' ', '"'],
  ['a;', ' ', '"'],
  ['a', ' ', '"'],
  ['', ', ', 'x'],
  ['', 'a,', ''],
  ['', 'a/b;q=0.1,', ''],
  ['', ';', ''],
  ['', ';a=', '"'],
  ['', ';a="b"', '"'],
  ['a="', '\\"', ''],
  ['', '"', ''],
  ['', 'a', ''],
  ['', 'a.', ''],
  ['http://', 'a', ':'],
  ['http://', 'a.', ':'],
  ['', ':', ''],
  ['[', '1:', ']'],
  ['', '[]:1', 'x'],
  ['', '/', ''],
  ['', '%', ''],
  ['', '%25', ''],
  ['', '%41', ''],
  ['xn--', 'a9', ''],
  ['', '1', 'x'],
  ['', '&a', ''],
  ['bytes=', ',', ''],
  ['bytes=', '1-,', ''],
  ['Bearer ', ' ', ''],
  ['', `${definition.identity.keyPrefix}test_`, ''],
  ['', `${definition.identity.keyPrefix}test_${'a'.repeat(36)}`, ''],
  ['=?base64?', '?=', 'x'],
  ['127.0.0.1', ', 127.0.0.1', ''],
  ['', ', no-cache x', ''],
  ['00-', '0', '-'],
];

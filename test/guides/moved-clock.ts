import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A header in which each request says how far the clock of the program has been moved */
export const MOVED_HEADER = 'x-moved-seconds';

/*
 * Clocks that move on by the time that a program wants to wait, if that is long, and write down how long. Random numbers
 * are 0, so that there is no other wait; in JavaScript, the shorter timers are those of fetch.
 */
const toJsClock = (fromSeconds: number) => `
const { now } = Date;
const { setTimeout, fetch } = globalThis;
let movedMs = 0;
Date.now = () => now() + movedMs;
Math.random = () => 0;
globalThis.setTimeout = (callback, ms, ...rest) => {
  if (ms < ${fromSeconds * 1_000}) return setTimeout(callback, ms, ...rest);
  movedMs += ms;
  console.error('waited', Math.round(ms / 1000));
  return setImmediate(callback);
};
globalThis.fetch = (url, init) =>
  fetch(url, { ...init, headers: { ...init.headers, '${MOVED_HEADER}': String(movedMs / 1000) } });`;
const toPythonClock = (fromSeconds: number) => `
import random, sys, time, urllib.request
now, moved, urlopen = time.time, 0, urllib.request.urlopen
def sleep(seconds):
    global moved
    moved += seconds
    if seconds >= ${fromSeconds}:
        print('waited', round(seconds), file=sys.stderr)
def open_moved(request, **options):
    request.add_header('${MOVED_HEADER}', str(moved))
    return urlopen(request, **options)
time.time, time.sleep, random.random = lambda: now() + moved, sleep, lambda: 0
urllib.request.urlopen = open_moved
`;

/** Writes the clocks into a folder. Resolves with the arguments and the variables that make a program use them. */
export async function installMovedClock(
  folder: string,
  fromSeconds: number,
): Promise<{ readonly nodeArgs: readonly string[]; readonly env: NodeJS.ProcessEnv }> {
  const jsPath = join(folder, 'clock.mjs');
  await writeFile(jsPath, toJsClock(fromSeconds));
  await writeFile(join(folder, 'sitecustomize.py'), toPythonClock(fromSeconds));
  return {
    nodeArgs: ['--import', pathToFileURL(jsPath).href],
    env: { PATH: process.env.PATH, PYTHONPATH: folder },
  };
}

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { hasProgram } from '@animal-store/limits/testing';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { PLANS } from '../../src/definition/plans.js';
import { type CodeBlock, readCodeBlocks } from './code-blocks.js';
import { installMovedClock, MOVED_HEADER } from './moved-clock.js';

/** The animals of the guide's arithmetic */
const COUNT = 5_000;
const DAY_SECONDS = 86_400;
/** Longer than the timers of fetch; a wait that is shorter is waited for. */
const LONG_SECONDS = 10;
const RECORDS = /RECORDS = \[.*?\n\]/s;
const OWN_RECORDS: Readonly<Record<string, string>> = {
  js: `RECORDS = Array.from({ length: ${COUNT} }, (_, index) => ({ record: index + 1, name: 'Rex', categoryId: 3 }))`,
  python: `RECORDS = [{'record': index + 1, 'name': 'Rex', 'categoryId': 3} for index in range(${COUNT})]`,
};
const WORDS = ['five', 'six'];

const programs = readCodeBlocks().filter(({ code }) => code.includes("IMPORT = 'spring-2026'"));
const runnable = programs.filter(({ language }) => language === 'js' || hasProgram('python3', '--version'));
const guide = (await readFile('docs/guides/12-a-long-import.md', 'utf8')).replaceAll(/\s+/g, ' ');

/** A service that admits what a plan allows, in windows by the moved clock of the program, and breaks off some creates. */
async function startStub(plan: { readonly perMinute: number; readonly perDay: number }, lostCreates: number) {
  const windows = [
    { name: 'minute', limit: plan.perMinute, seconds: 60, used: 0, endsAt: 0 },
    { name: 'day', limit: plan.perDay, seconds: DAY_SECONDS, used: 0, endsAt: 0 },
  ];
  const counts = { created: 0, denied: 0, seconds: 0 };
  const startedAt = Date.now() / 1_000;
  const created = new Map<string, number>();
  let lost = lostCreates;
  const server = createServer((request, response) => {
    const now = Date.now() / 1_000 + Number(request.headers[MOVED_HEADER]);
    counts.seconds = now - startedAt;
    const isFree = request.method === 'GET';
    const isDenied = !isFree && windows.some(({ limit, used, endsAt }) => now < endsAt && used >= limit);
    for (const window of windows) {
      if (now >= window.endsAt) [window.used, window.endsAt] = [0, now + window.seconds];
      if (!isFree && !isDenied) window.used += 1;
    }
    const left = windows.map(
      ({ name, limit, used, endsAt }) => `"${name}";r=${limit - used};t=${Math.ceil(endsAt - now)}`,
    );
    counts.denied += Number(isDenied);
    if (!isFree && !isDenied) {
      const key = String(request.headers['idempotency-key']);
      if (!created.has(key)) created.set(key, created.size + 1);
      counts.created = created.size;
      lost -= 1;
      if (lost >= 0) {
        request.socket.destroy();
        return;
      }
    }
    request.resume();
    response.writeHead(isDenied ? 429 : isFree ? 200 : 201, {
      'content-type': 'application/json',
      ratelimit: left.join(', '),
    });
    response.end(JSON.stringify(isDenied ? { code: 'rate_limit_exceeded' } : { id: counts.created }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, counts };
}

/** Imports them with a clock that is moved. Resolves with what the service counted, and the lines of the waits. */
async function importAll({ language, code }: CodeBlock, plan: 'free' | 'business', lostCreates = 0) {
  const folder = await createTemporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const clock = await installMovedClock(folder, LONG_SECONDS);
  const cwd = await mkdtemp(join(folder, 'import-'));
  const { url, counts } = await startStub(PLANS[plan], lostCreates);
  const file = join(cwd, language === 'python' ? 'import.py' : 'import.mjs');
  await writeFile(file, code.replace(RECORDS, OWN_RECORDS[language] ?? expect.unreachable()));
  const [program, args] =
    language === 'python' ? ['python3', [file]] : [process.execPath, [...clock.nodeArgs, file]];
  const env = { ...clock.env, ANIMAL_STORE_URL: url, ANIMAL_STORE_KEY: 'as_test_x' };
  const options = { cwd, env, maxBuffer: 2 ** 24 };
  const output = await new Promise<{ stdout: string; stderr: string }>((finish, fail) =>
    execFile(program, args, options, (error, stdout, stderr) =>
      error === null ? finish({ stdout, stderr }) : fail(new Error(`${error.message}\n${stderr}`)),
    ),
  );
  const waits = output.stderr.split('\n').filter((line) => line.includes(' goes on at '));
  return { ...counts, stdout: output.stdout, waits };
}

test.each(runnable)(
  'on a free key, the import in $language takes the days that the guide says, and is never denied',
  { timeout: 180_000 },
  async (program) => {
    for (const [lostCreates, words] of WORDS.entries()) {
      const { created, denied, seconds, stdout, waits } = await importAll(program, 'free', lostCreates);
      expect([created, denied, stdout]).toEqual([COUNT, 0, `${COUNT} added, 0 refused\n`]);
      expect(guide).toContain(
        lostCreates === 0 ? `the import spans ${words} daily windows` : 'One retry pushes it into a sixth.',
      );
      const days = Math.ceil(seconds / DAY_SECONDS);
      expect(days).toBe(5 + lostCreates);
      // A line for each wait: of a day, and of the minutes in between.
      const ofDays = waits.filter((line) => line.includes('the day is used up'));
      expect(ofDays).toHaveLength(days - 1);
      const [example = ''] = /(?<=`)[\d,]+ of 5,000; [^`]+(?=`)/.exec(guide) ?? [];
      const toLine = (line: string) => line.replace(/[\d-]+ [\d:]+$/, '');
      if (lostCreates === 0) expect(toLine(ofDays[0] ?? '')).toBe(toLine(example));
      expect(waits.some((line) => /^60 of 5,000; the minute is used up, /.test(line))).toBe(
        lostCreates === 0,
      );
    }
  },
);

test.each(runnable)(
  'on the business plan, the import in $language takes five minutes at most',
  { timeout: 180_000 },
  async (program) => {
    expect(guide).toContain('The business plan allows them in five minutes.');
    const { created, denied, seconds } = await importAll(program, 'business');
    expect([created, denied]).toEqual([COUNT, 0]);
    expect(seconds).toBeGreaterThan(180);
    expect(seconds).toBeLessThanOrEqual(300);
  },
);

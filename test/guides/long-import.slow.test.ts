import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hasProgram } from '@animal-store/limits/testing';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useService } from '../support/service.js';
import { type CodeBlock, readCodeBlocks } from './code-blocks.js';
import { installMovedClock } from './moved-clock.js';
import { answerWithError, startUnreliableProxy } from './unreliable-proxy.js';

/** The programs of the guide add Rex and Pixel, and are refused an animal without a name. */
const programs = readCodeBlocks().filter(({ code }) => code.includes("IMPORT = 'spring-2026'"));
const DONE = /^2 added, 1 refused\n2 name must have/;
const STATE = 'spring-2026.jsonl';
const DAY_SECONDS = 86_400;
/** Waits from here on are not waited for: the clock is moved. */
const LONG_SECONDS = 3_600;

/** Ends a run */
const FORBIDDEN = answerWithError(403, 'insufficient_scope');

type Treatments = Parameters<typeof startUnreliableProxy>[1];

interface Run {
  readonly code: number;
  readonly requestCount: number;
  readonly stdout: string;
  readonly stderr: string;
}

let folder: string;
let clock: Awaited<ReturnType<typeof installMovedClock>>;

const { service } = useService();

beforeAll(async () => {
  folder = await createTemporaryFolder();
  clock = await installMovedClock(folder, LONG_SECONDS);
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

const REX = { name: 'Rex', categoryId: 3 };
const PIXEL = { name: 'Pixel', categoryId: 2 };

/** An import with a key of its own. An animal like one of its own was there before. */
async function prepareImport(before = REX) {
  const cwd = await mkdtemp(join(folder, 'import-'));
  const { key } = await service.keys.create({ name: 'import', expiresAt: null, plan: 'business' });
  const { id: lastId } = await service.items.create(before);

  /** Runs the program until it ends. Its first creates are treated as given. */
  async function run({ language, code }: CodeBlock, creates: Treatments = [], path = ''): Promise<Run> {
    const proxy = await startUnreliableProxy(service.url, creates, 'POST');
    const isPython = language === 'python';
    const file = join(cwd, isPython ? 'import.py' : 'import.mjs');
    await writeFile(file, code);
    const args = isPython ? [file] : [...clock.nodeArgs, file];
    const env = { ...clock.env, ANIMAL_STORE_URL: proxy.url + path, ANIMAL_STORE_KEY: key };
    return new Promise<Run>((finish) => {
      execFile(isPython ? 'python3' : process.execPath, args, { cwd, env }, (error, stdout, stderr) => {
        finish({ code: Number(error?.code ?? 0), requestCount: proxy.requestCount(), stdout, stderr });
      });
    }).finally(() => proxy.close());
  }
  const listAdded = async () => {
    const added = await service.items.list({ limit: 100, cursor: lastId });
    return added.map(({ name }) => name);
  };
  const statePath = join(cwd, STATE);
  /** Between two runs */
  async function letDayPass(): Promise<void> {
    await forgetKeys();
    const state = await readFile(statePath, 'utf8');
    const startedAt = /(?<="startedAt": ?)[\d.]+/g;
    await writeFile(
      statePath,
      state.replace(startedAt, (seconds) => String(Number(seconds) - DAY_SECONDS)),
    );
  }
  /** What somebody writes into the last line who has been asked whether an animal is that of the record */
  async function answer(member: 'id' | 'after', id: number): Promise<void> {
    const lines = (await readFile(statePath, 'utf8')).trimEnd().split('\n');
    const last = { ...JSON.parse(lines.pop() ?? ''), [member]: id };
    await writeFile(statePath, `${[...lines, JSON.stringify(last)].join('\n')}\n`);
  }
  return { run, listAdded, letDayPass, answer, lastId, statePath };
}

/** As the service does in the course of a day */
async function forgetKeys(): Promise<void> {
  await service.database.pool.query(
    `UPDATE idempotent_creates SET created_at = created_at - interval '${DAY_SECONDS} seconds'`,
  );
}

/** The limit of the day is used up. */
async function denyForDay() {
  await forgetKeys();
  return answerWithError(429, 'rate_limit_exceeded', { 'retry-after': String(DAY_SECONDS) });
}

function expectDone({ code, stdout, stderr }: Run): void {
  expect(stdout, stderr).toMatch(DONE);
  expect(code).toBe(0);
}

test('the long import is there in two languages', () => {
  expect(programs.map(({ language }) => language)).toEqual(['js', 'python']);
});

const hasPython = hasProgram('python3', '--version');
const runnable = programs.filter(({ language }) => language !== 'python' || hasPython);

describe.each(runnable)('the long import in $language', (program) => {
  test('each record is one request, beside the one for what is left, which costs nothing', async () => {
    const { run, listAdded } = await prepareImport();
    const { requestCount, ...done } = await run(program);
    expectDone({ requestCount, ...done });
    expect(requestCount).toBe(4);
    expect(await listAdded()).toEqual(['Rex', 'Pixel']);
  });

  test('an animal whose response was lost is not added again after a wait of a day', async () => {
    const { run, listAdded } = await prepareImport(PIXEL);
    expectDone(await run(program, ['forwarded', 'forwarded', 'lost', denyForDay]));
    expect(await listAdded()).toEqual(['Rex', 'Pixel']);
  });

  test('nor when a day has passed between two runs', async () => {
    const { run, listAdded, letDayPass } = await prepareImport(PIXEL);
    expect((await run(program, ['forwarded', 'forwarded', 'lost', FORBIDDEN])).code).toBe(1);
    await letDayPass();
    expectDone(await run(program));
    expect(await listAdded()).toEqual(['Rex', 'Pixel']);
  });

  test('an animal that was there before the import is not taken for one that it added', async () => {
    const { run, listAdded, letDayPass } = await prepareImport(PIXEL);
    expect((await run(program, ['forwarded', 'forwarded', 'not sent', FORBIDDEN])).code).toBe(1);
    await letDayPass();
    expectDone(await run(program));
    expect(await listAdded()).toEqual(['Rex', 'Pixel']);
  });

  test.each([
    ['lost', 'id'],
    ['not sent', 'after'],
  ] as const)(
    'the first animal, which was %s more than a day ago, is neither added twice nor taken for another: it asks',
    async (treatment, member) => {
      const { run, listAdded, letDayPass, answer, lastId } = await prepareImport();
      expect((await run(program, [treatment, FORBIDDEN])).code).toBe(1);
      await letDayPass();
      const added = await service.items.list({ limit: 100, cursor: lastId });
      const like = added.at(-1)?.id ?? lastId;
      for (const _again of [1, 2]) {
        const { code, stderr } = await run(program);
        expect(code).toBe(1);
        expect(stderr).toContain(
          `Is record 1 animal ${like}? In the last line of ${STATE}, add "id": ${like} if it is, else set "after" to ${like}.`,
        );
      }
      await answer(member, like);
      expectDone(await run(program));
      expect(await listAdded()).toEqual(['Rex', 'Pixel']);
    },
  );

  test('where nothing is like the first animal, it is added without a question', async () => {
    const { run, listAdded, letDayPass } = await prepareImport();
    await service.database.pool.query("DELETE FROM pets WHERE name = 'Rex'");
    expect((await run(program, ['not sent', FORBIDDEN])).code).toBe(1);
    await letDayPass();
    expectDone(await run(program));
    expect(await listAdded()).toEqual(['Rex', 'Pixel']);
  });

  test('an error that is not about a record ends it, and the next run adds the record', async () => {
    const { run, listAdded } = await prepareImport();
    const errors = [
      answerWithError(401, 'invalid_api_key'),
      answerWithError(404, 'not_found'),
      answerWithError(405, 'method_not_allowed'),
      answerWithError(410, 'operation_removed'),
      answerWithError(415, 'unsupported_media_type'),
      answerWithError(422, 'idempotency_key_reused'),
      answerWithError(429, 'api_key_banned', { 'retry-after': '300' }),
      { status: 400, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Request</h1>' },
    ];
    for (const error of errors) {
      const { code, stderr } = await run(program, [error]);
      expect([error.status, code]).toEqual([error.status, 1]);
      expect(stderr).toContain(`${error.status} ${error.body}`);
    }
    const { code, stderr } = await run(program, [], '/v1');
    expect(stderr).toContain('404');
    expect(code).toBe(1);
    expectDone(await run(program));
    expect(await listAdded()).toEqual(['Rex', 'Pixel']);
  });

  test('it goes on after the page of a proxy', async () => {
    const { run, listAdded } = await prepareImport();
    const headers = { 'content-type': 'text/html', 'retry-after': 'Fri, 31 Dec 1999 23:59:59 GMT' };
    const { stderr, ...done } = await run(program, [
      { status: 502, headers, body: '<h1>Bad Gateway</h1>' },
      answerWithError(503, 'service_unavailable', { 'retry-after': '1' }),
    ]);
    expectDone({ stderr, ...done });
    expect(stderr).toMatch(/^0 of 3; the response is a 503, goes on at /m);
    expect(await listAdded()).toEqual(['Rex', 'Pixel']);
  });

  test('a last line that was cut off harms neither the next run nor the one after it', async () => {
    const { run, listAdded, statePath } = await prepareImport();
    const creates = ['forwarded', 'forwarded', FORBIDDEN] as const;
    expect((await run(program, creates)).code).toBe(1);
    const { length } = await readFile(statePath);
    await truncate(statePath, length - 5);
    expectDone(await run(program));
    expectDone(await run(program));
    expect(await listAdded()).toEqual(['Rex', 'Pixel']);
  });

  test('it waits for a window that is used up before the next create, and not after the last', async () => {
    const { run } = await prepareImport();
    const usedUp = { replaced: { ratelimit: `"minute";r=59;t=60, "day";r=0;t=${DAY_SECONDS}` } };
    const { stderr, ...done } = await run(program, [usedUp, 'forwarded', usedUp]);
    expectDone({ stderr, ...done });
    expect(stderr).toMatch(
      /^1 of 3; the day is used up, goes on at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\nwaited 86400\n$/,
    );
  });
});

test.runIf(hasPython)('what one program has begun, one in another language goes on with', async () => {
  for (const [first, second] of [programs, programs.toReversed()] as [CodeBlock, CodeBlock][]) {
    const { run, listAdded } = await prepareImport();
    expect((await run(first, ['lost', FORBIDDEN])).code).toBe(1);
    expectDone(await run(second));
    expect(await listAdded()).toEqual(['Rex', 'Pixel']);
  }
});

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort, hasProgram, reportMissing } from '@animal-store/limits/testing';
import {
  createCaller,
  createTemporaryFolder,
  type Program,
  runCommand,
  until,
} from '@animal-store/platform/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { list } from '#operations-under-test';
import { programOf, runKeys, UNREACHED_LIMITS } from '../support/process.js';
import { createTestDatabase } from '../support/test-service.js';

vi.setConfig({ testTimeout: 120_000 });

const isRoot = process.getuid?.() === 0;
if (!isRoot) reportMissing('the right to mount a file system');
const hasScript = hasProgram('script', '--version');

/** A service in production's form, whose standard output is what a line of the shell makes of it. */
async function startService(redirect: (command: string, folder: string) => string[], folder: string) {
  const DATABASE_URL = await createTestDatabase();
  const { key } = await runKeys({ DATABASE_URL }, 'create', '--name', 'load', ...UNREACHED_LIMITS);
  const port = await freePort();
  const pidFile = join(folder, 'pid');
  const command = `echo $$ > ${pidFile}; exec ${process.execPath} ${programOf('main')}`;
  const program = runCommand('sh', ['-c', ...redirect(command, folder)], {
    DATABASE_URL,
    APP_ENV: 'staging',
    PORT: String(port),
  });
  const call = createCaller({ url: `http://127.0.0.1:${port}`, key });
  await until(async () => (await call('/health/ready').catch(() => undefined))?.status === 200 || undefined);
  const pid = Number(await readFile(pidFile, 'utf8'));
  onTestFinished(() => {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  });
  const countLost = async () => {
    const text = await fetch(`http://127.0.0.1:${port}/metrics`).then((response) => response.text());
    return Number(/^boatyard_log_lines_lost_total (\d+)$/m.exec(text)?.[1]);
  };
  /** Requests of which every one has to be answered, with lines as long as they can be, until a condition holds */
  const load = async (isEnough: () => Promise<boolean>) => {
    let isOver = false;
    const headers = { 'user-agent': 'x'.repeat(200), 'x-request-id': 'y'.repeat(128) };
    const send = async () => {
      while (!isOver) {
        const answers = [await call(list.path, { headers }), await call(`/${'z'.repeat(199)}`, { headers })];
        expect(answers.map(({ status }) => status)).toEqual([200, 404]);
      }
    };
    const callers = Promise.all(Array.from({ length: 32 }, send));
    await until(async () => (await isEnough()) || undefined, 60_000).finally(() => {
      isOver = true;
    });
    await callers;
  };
  return { program, pid, call, countLost, load };
}

async function createFolder(): Promise<string> {
  const folder = await createTemporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

async function untilEnded(pid: number): Promise<void> {
  process.kill(pid, 'SIGTERM');
  await expect.poll(() => isAlive(pid), { timeout: 20_000 }).toBe(false);
}

test.runIf(isRoot)(
  'a file system that fills under load and is emptied: every request is answered, and one line says how many were lost',
  async () => {
    const folder = await createFolder();
    const disk = join(folder, 'disk');
    execFileSync('mkdir', [disk]);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', disk]);
    onTestFinished(() => void execFileSync('umount', ['-l', disk]));
    const log = join(disk, 'log');
    const { program, pid, countLost, load } = await startService(
      (command) => [`exec sh -c "$0" >> ${log}`, command],
      folder,
    );
    await load(async () => (await countLost()) > 1_000);
    execFileSync('mount', ['-o', 'remount,size=32m', disk]);
    const text = await until(async () => {
      const written = await readFile(log, 'utf8');
      return written.includes('"lost"') ? written : undefined;
    });
    const lines = text.trimEnd().split('\n');
    const reports = lines.map((line) => JSON.parse(line)).filter(({ lost }) => lost !== undefined);
    expect(reports).toEqual([
      expect.objectContaining({
        level: 40,
        lost: await countLost(),
        reason: expect.stringContaining('ENOSPC'),
        msg: expect.stringContaining('the log is written again'),
      }),
    ]);
    // Emptied, as a tool that rotates logs does, it goes on.
    await truncate(log);
    await load(async () => (await readFile(log, 'utf8')).includes('"request"'));
    await untilEnded(pid);
    expect(await program.ended).toBe(0);
  },
);

test('a pipe that nobody reads under load: memory has a bound, and SIGTERM ends the service with 0', async () => {
  const folder = await createFolder();
  const { program, pid, countLost, load } = await startService((command) => [command], folder);
  const readMegabytes = async () =>
    Number(/^VmRSS:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  await load(async () => (await readMegabytes()) > 0 && program.output().length > 100_000);
  program.child.stdout?.pause();
  await load(async () => (await countLost()) > 0);
  const full = await readMegabytes();
  const lost = await countLost();
  await load(async () => (await countLost()) > lost + 15_000);
  // Those lines alone are 12 MB.
  expect((await readMegabytes()) - full).toBeLessThan(60);
  const exited = once(program.child, 'exit');
  process.kill(pid, 'SIGTERM');
  expect(await exited).toEqual([0, null]);
});

/** Runs it in a terminal, of which `script` is the other end. */
const inTerminal = (command: string) => [`exec script --quiet --command "$0" /dev/null`, command];
/** The same, but in a session of its own, which gets no SIGHUP when the terminal is closed. */
const besideTerminal = (command: string) => [
  `exec script --quiet --command "setsid --wait sh -c '$0'" /dev/null`,
  command,
];

const close = ({ child }: Program) => child.kill('SIGKILL');

test.runIf(hasScript)('a terminal that is closed ends the service', async () => {
  const { program, pid } = await startService(inTerminal, await createFolder());
  close(program);
  await expect.poll(() => isAlive(pid), { timeout: 20_000 }).toBe(false);
});

test.runIf(hasScript)('a service that outlives its terminal serves, and ends on SIGTERM', async () => {
  const { program, pid, call, load } = await startService(besideTerminal, await createFolder());
  close(program);
  const end = Date.now() + 2_000;
  await load(async () => Date.now() > end);
  expect((await call(list.path)).status).toBe(200);
  await untilEnded(pid);
});

test.runIf(hasScript)(
  'a terminal that shows nothing more does not hold up requests, and the service ends on SIGTERM',
  async () => {
    const { program, pid, call, load, countLost } = await startService(besideTerminal, await createFolder());
    program.child.kill('SIGSTOP');
    await load(async () => (await countLost()) > 0);
    expect((await call(list.path)).status).toBe(200);
    await untilEnded(pid);
    close(program);
  },
);

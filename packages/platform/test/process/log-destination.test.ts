import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { freePort } from '@animal-store/limits/testing';
import {
  createCaller,
  type Environment,
  type Program,
  type RunOptions,
  runNode,
} from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { list } from '#operations-under-test';
import { builtModule, programOf } from '../support/process.js';
import { setUpServiceProcesses, stop, untilReady } from '../support/service-processes.js';
import { createTestDatabase } from '../support/test-service.js';

const processes = setUpServiceProcesses();

const LINES = 60_000;

/** Writes more lines than may wait, says on standard error that it has, and ends when it gets SIGTERM. */
const FLOOD = `
  import { openLogDestination } from '${builtModule('process/log-destination.js')}';
  const log = openLogDestination({
    minLength: 32768,
    onRecovery: ({ lost, reason }) => log.write(JSON.stringify({ lost, reason }) + '\\n'),
  });
  for (let line = 0; line < ${LINES}; line += 1) log.write(JSON.stringify({ line, text: 'x'.repeat(180) }) + '\\n');
  process.on('SIGTERM', async () => {
    await log.close(500);
    process.exit(0);
  });
  setInterval(() => {}, 1000);
  const { values } = await log.lostLines.get();
  console.error('lost ' + values[0].value);`;

async function flood(options: RunOptions = {}): Promise<{ program: Program; lost: number }> {
  const program = runNode(['--input-type=module', '-e', FLOOD], {}, undefined, options);
  onTestFinished(() => void program.child.kill('SIGKILL'));
  program.child.stdout?.pause();
  const [, lost] = await program.until(/lost (\d+)/);
  return { program, lost: Number(lost) };
}

/** The lines of JSON in the output, in their order. */
function readLines(program: Program): { line?: number; lost?: number; reason?: string }[] {
  return program
    .output()
    .split('\n')
    .filter((text) => text.startsWith('{'))
    .map((text) => JSON.parse(text));
}

test('of a pipe that nobody reads, 8 MiB wait: what follows is counted as lost, and once the pipe is read one line says how much', async () => {
  const { program, lost } = await flood();
  expect(lost * 200).toBeGreaterThan(LINES * 200 - 10 * 2 ** 20);
  program.child.stdout?.resume();
  await program.until(/"lost"/);
  const lines = readLines(program);
  expect(lines).toHaveLength(LINES - lost + 1);
  // Those that waited are whole and in their order.
  expect(lines.slice(0, -1).map(({ line }) => line)).toEqual(Array.from(Array(LINES - lost).keys()));
  expect(lines.at(-1)).toEqual({ lost, reason: 'it was not read fast enough' });
  expect(await stop(program)).toBe(0);
});

test('a process whose log is a pipe that nobody reads ends all the same', async () => {
  const { program } = await flood();
  const exited = once(program.child, 'exit');
  program.child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
});

async function openFull(): Promise<RunOptions> {
  const file = await open('/dev/full', 'w');
  onTestFinished(() => file.close());
  return { stdout: file.fd };
}

const isLinux = existsSync('/dev/full');

test.runIf(isLinux)('a process whose log is on a full file system ends all the same', async () => {
  const { program } = await flood(await openFull());
  expect(await stop(program)).toBe(0);
});

/** In development lines are written one by one and in words, elsewhere in batches. */
const environments: [string, () => Promise<Environment>][] = [
  ['development', async () => ({ DATA_DIR: processes.dataDir })],
  ['staging', async () => ({ DATABASE_URL: await createTestDatabase(), APP_ENV: 'staging' })],
];

/** Starts a service whose standard output cannot be seen, and waits until it serves. */
async function startUnseen(environment: Environment, options: RunOptions = {}) {
  const port = await freePort();
  const service = runNode([programOf('main')], { ...environment, PORT: String(port) }, undefined, options);
  processes.programs.push(service);
  service.child.stdout?.destroy();
  const call = createCaller({ url: `http://127.0.0.1:${port}`, key: 'by_test_none' });
  await expect
    .poll(async () => (await call('/health/ready').catch(() => undefined))?.status, { timeout: 30_000 })
    .toBe(200);
  return { service, call };
}

test.runIf(isLinux).each(environments)(
  'in %s a service whose log is on a full file system serves, says nothing on standard error, and ends with 0 on SIGTERM',
  async (_name, environment) => {
    const { service, call } = await startUnseen(await environment(), await openFull());
    for (let index = 0; index < 100; index += 1) expect((await call(list.path)).status).toBe(401);
    expect(await stop(service)).toBe(0);
    expect(service.output()).toBe('');
  },
);

test.each(environments)(
  'in %s a service whose log is a pipe that nobody has open any more does the same',
  async (_name, environment) => {
    const { service, call } = await startUnseen(await environment());
    for (let index = 0; index < 100; index += 1) expect((await call(list.path)).status).toBe(401);
    expect(await stop(service)).toBe(0);
    expect(service.output()).toBe('');
  },
);

test('SIGHUP, which a closed terminal sends, ends a service as SIGTERM does, and SIGUSR1 opens no debugger', async () => {
  const service = processes.start();
  await untilReady(service);
  service.child.kill('SIGUSR1');
  expect(await stop(service, 'SIGHUP')).toBe(0);
  expect(service.output()).toContain('SIGHUP: finishing running requests');
  expect(service.output()).not.toMatch(/debugger/i);
});

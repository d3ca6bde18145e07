import { existsSync } from 'node:fs';
import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { type Program, runCommand } from '@animal-store/platform/testing';
import { expect, test, vi } from 'vitest';
import { beginCreate } from '../packages/platform/test/support/begin-create.js';
import { setUpServiceProcesses } from '../packages/platform/test/support/service-processes.js';

vi.setConfig({ testTimeout: 90_000 });

const processes = setUpServiceProcesses();

/** A process group of its own, as a shell starts each command in a terminal. */
async function startDev() {
  const { dataDir, programs } = processes;
  const dev = runCommand('npm', ['run', 'dev'], { DATA_DIR: dataDir, PORT: '0' }, { detached: true });
  programs.push(dev);
  const [, key = '', url = ''] = await dev.until(/Bearer (\w+)' '(http:\/\/[\d.:]+)\//);
  return { dev, key, url };
}

/** What a terminal does on Ctrl-C: every process of the group gets the signal. */
function pressCtrlC({ child }: Program): void {
  process.kill(-(child.pid as number), 'SIGINT');
}

const isPostgresRunning = () => existsSync(join(processes.dataDir, 'postgres/data/postmaster.pid'));

test.each([1, 2])(
  'npm run dev on Ctrl-C, pressed %d time(s): the running request is finished, and PostgreSQL stops',
  async (times) => {
    const { dev, key, url } = await startDev();
    const finish = await beginCreate(url, key);
    expect(isPostgresRunning()).toBe(true);
    pressCtrlC(dev);
    await dev.until(/finishing running requests/);
    if (times === 2) pressCtrlC(dev);
    expect(await finish()).toBe(201);
    expect(await dev.ended).toBe(0);
    expect(isPostgresRunning()).toBe(false);
  },
);

test('npm run dev in a terminal that is closed leaves no PostgreSQL behind', async () => {
  const { dev } = await startDev();
  expect(isPostgresRunning()).toBe(true);
  // The terminal takes no more lines, and every process of the group gets the signal.
  for (const stream of [dev.child.stdout, dev.child.stderr]) stream?.destroy();
  process.kill(-(dev.child.pid as number), 'SIGHUP');
  await expect.poll(isPostgresRunning, { timeout: 20_000 }).toBe(false);
});

test('npm run dev restarts after a change once the running request is finished, on the same database', async () => {
  const { dev, key, url } = await startDev();
  const finish = await beginCreate(url, key);
  const now = new Date();
  await utimes(join(import.meta.dirname, '../packages/platform/src/contract/deprecation.ts'), now, now);
  await dev.until(/finishing running requests/);
  expect(await finish()).toBe(201);
  const [, again] = await dev.until(/finishing running requests[\s\S]*Bearer (\w+)/);
  expect(again).toBe(key);
  pressCtrlC(dev);
  expect(await dev.ended).toBe(0);
  expect(dev.output()).not.toMatch(/Another service|error/i);
  expect(isPostgresRunning()).toBe(false);
});

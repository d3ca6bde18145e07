import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder } from '../test/support/temporary-folder.js';
import { median, printTable } from './table.js';

const TSC = 'node_modules/typescript-native/bin/tsc';
/** The service's own lines, in the order that it prints them. */
const MARKS = { postgres: 'PostgreSQL listens', ready: 'A line to paste' } as const;

interface Times {
  /** Milliseconds: the first time on a new DATA_DIR, and later */
  readonly first: number[];
  readonly later: number[];
}

/**
 * From `npm start` to the line that says the service is ready, on the embedded default, the first time and later; and
 * what it consists of: each part run by itself, and the service's log read with a watch. Options: `--rounds=N`.
 */
export async function benchStart(options: ReadonlyMap<string, string>): Promise<void> {
  const parts = new Map<string, Times>();
  for (let round = 0; round < Number(options.get('rounds') ?? 3); round += 1) {
    await timeParts((part, occasion, milliseconds) => {
      const times = parts.get(part) ?? { first: [], later: [] };
      parts.set(part, times);
      times[occasion].push(milliseconds);
    });
  }
  const cells = (occasion: keyof Times) => [...parts].map(([, times]) => Math.round(median(times[occasion])));
  const first = cells('first');
  const later = cells('later');
  printTable(
    ['ms until ready', 'first', 'later'],
    [...parts.keys()].map((part, index) => [part, first[index] ?? '', later[index] ?? '']),
  );
}

type Note = (part: string, occasion: keyof Times, milliseconds: number) => void;

async function timeParts(note: Note): Promise<void> {
  const buildFolder = await createTemporaryFolder();
  const cold = ['--project', '.', '--outDir', buildFolder, '--tsBuildInfoFile', join(buildFolder, 'info')];
  for (const occasion of ['first', 'later'] as const) {
    note('npm, for start and for build', occasion, 2 * (await timeRun('npm', ['run', '--silent'])));
    note('prisma generate', occasion, await timeRun('node_modules/.bin/prisma', ['generate']));
    note('tsc', occasion, await timeRun('node', [TSC, ...(occasion === 'first' ? cold : ['--build'])]));
  }
  await rm(buildFolder, { recursive: true });

  const dataDir = await createTemporaryFolder();
  for (const occasion of ['first', 'later'] as const) {
    const node = await timeRun('node', ['--eval', '0']);
    // It reads its configuration when all modules are there, and stops at a bad one.
    const modules = await timeRun('node', ['dist/main.js'], { PORT: 'none' });
    const { postgres, ready } = await timeService('node', ['dist/main.js'], dataDir);
    note('node', occasion, node);
    note("the service's modules", occasion, modules - node);
    note('PostgreSQL', occasion, postgres - modules);
    note('schema, sample, key, app, listening', occasion, ready - postgres);
  }
  await rm(dataDir, { recursive: true });

  const wholeDataDir = await createTemporaryFolder();
  for (const occasion of ['first', 'later'] as const) {
    const { ready } = await timeService('npm', ['start'], wholeDataDir);
    note('npm start as a whole, built before', occasion, ready);
  }
  await rm(wholeDataDir, { recursive: true });
}

async function timeRun(
  program: string,
  values: string[],
  environment: Record<string, string> = {},
): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(program, values, { env: { ...process.env, ...environment }, stdio: 'ignore' });
  await once(child, 'exit');
  return performance.now() - startedAt;
}

/** Milliseconds from the start of the program to each of the service's lines. Ends it. */
async function timeService(
  program: string,
  values: string[],
  dataDir: string,
): Promise<Record<keyof typeof MARKS, number>> {
  const startedAt = performance.now();
  const environment = { ...process.env, DATA_DIR: dataDir, PORT: '0', DATABASE_URL: '', REDIS_URL: '' };
  const service = spawn(program, values, { env: environment, stdio: ['ignore', 'pipe', 'ignore'] });
  const times = { postgres: Number.NaN, ready: Number.NaN };
  let output = '';
  for await (const chunk of service.stdout) {
    output += chunk;
    const now = performance.now() - startedAt;
    if (Number.isNaN(times.postgres) && output.includes(MARKS.postgres)) times.postgres = now;
    if (!output.includes(MARKS.ready)) continue;
    times.ready = now;
    break;
  }
  service.kill('SIGTERM');
  if (service.exitCode === null) await once(service, 'exit');
  return times;
}

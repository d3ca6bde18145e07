import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createEmbeddedPostgres } from '@animal-store/embedded-postgres';
import { createTemporaryFolder } from '../test/support/temporary-folder.js';
import { readNumber } from './option-values.js';
import { median, printTable } from './table.js';

const OPTIONS = { rounds: { type: 'string', default: '3' } } as const;

const TSC = 'node_modules/typescript-native/bin/tsc';
/** Lines that the service prints on the embedded database, in this order. */
const MARKS = { postgres: 'PostgreSQL listens', ready: 'Try it with' } as const;

/** The first start on a new DATA_DIR, and a later one. */
const OCCASIONS = ['first', 'later'] as const;
type Occasion = (typeof OCCASIONS)[number];
type Times = Record<Occasion, number[]>;

/**
 * The time from `npm start`, on the embedded database, to the line that says that the service is ready, and the steps
 * that it consists of: some are run separately, the others timed between lines of the service's output.
 */
export async function benchStart(args: string[]): Promise<void> {
  const rounds = readNumber('rounds', parseArgs({ args, options: OPTIONS }).values.rounds);
  const steps = new Map<string, Times>();
  const add: AddTime = (step, occasion, milliseconds) => {
    const times = steps.get(step) ?? { first: [], later: [] };
    times[occasion].push(milliseconds);
    steps.set(step, times);
  };
  for (let round = 0; round < rounds; round += 1) {
    await timeBuild(add);
    await timeSteps(add);
    await timeNpmStart(add);
    await timeWithDatabaseUrl(add);
  }
  printTable(
    ['ms until ready', ...OCCASIONS],
    [...steps].map(([step, times]) => [
      step,
      ...OCCASIONS.map((occasion) =>
        times[occasion].length > 0 ? Math.round(median(times[occasion])) : '–',
      ),
    ]),
  );
}

type AddTime = (step: string, occasion: Occasion, milliseconds: number) => void;

async function timeBuild(add: AddTime): Promise<void> {
  const buildFolder = await createTemporaryFolder();
  const tscArgs = ['--project', '.', '--outDir', buildFolder, '--tsBuildInfoFile', join(buildFolder, 'info')];
  for (const occasion of OCCASIONS) add('npm', occasion, await timeRun('npm', ['run', '--silent']));
  add('prisma generate', 'first', await timeRun('node_modules/.bin/prisma', ['generate']));
  add('tsc', 'first', await timeRun('node', [TSC, ...tscArgs]));
  add('the build, up to date', 'later', await timeRun('node', ['scripts/build.js']));
  await rm(buildFolder, { recursive: true });
}

async function timeSteps(add: AddTime): Promise<void> {
  const dataDir = await createTemporaryFolder();
  for (const occasion of OCCASIONS) {
    const node = await timeRun('node', ['--eval', '0']);
    // The service reads its configuration after all modules are loaded, and exits because this one is bad.
    const modules = await timeRun('node', ['dist/main.js'], { PORT: 'none' });
    const { postgres, ready } = await timeService('node', ['dist/main.js'], { DATA_DIR: dataDir }, MARKS);
    add('node', occasion, node);
    add("the service's modules", occasion, modules - node);
    add('PostgreSQL', occasion, postgres - modules);
    add('schema, sample, key, app, listening', occasion, ready - postgres);
  }
  await rm(dataDir, { recursive: true });
}

async function timeNpmStart(add: AddTime): Promise<void> {
  const dataDir = await createTemporaryFolder();
  for (const occasion of OCCASIONS) {
    const { ready } = await timeService('npm', ['start'], { DATA_DIR: dataDir }, MARKS);
    add('npm start as a whole, already built', occasion, ready);
  }
  await rm(dataDir, { recursive: true });
}

/** On a database of its own, like a start with DATABASE_URL: without PostgreSQL's own start. */
async function timeWithDatabaseUrl(add: AddTime): Promise<void> {
  const dataDir = await createTemporaryFolder();
  const postgres = await createEmbeddedPostgres({ dataDir, database: 'bench' });
  const environment = { DATABASE_URL: postgres.url, PORT: '0' };
  await timeRun('npm', ['run', '--silent', 'migrate'], environment);
  for (const occasion of OCCASIONS) {
    const { ready } = await timeService('npm', ['start'], environment, { ready: 'listening' });
    add('npm start with DATABASE_URL', occasion, ready);
    const args = ['run', '--silent', 'keys', '--', 'list'];
    add('npm run keys -- list with DATABASE_URL', occasion, await timeRun('npm', args, environment));
  }
  await postgres.release();
  await rm(dataDir, { recursive: true });
}

async function timeRun(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(program, args, { env: { ...process.env, ...environment }, stdio: 'ignore' });
  await once(child, 'exit');
  return performance.now() - startedAt;
}

/** Returns the milliseconds from the start of the program to each of the lines with these texts, and stops it. */
async function timeService<Mark extends string>(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  marks: Readonly<Record<Mark, string>>,
): Promise<Record<Mark, number>> {
  const startedAt = performance.now();
  const env = { ...process.env, PORT: '0', DATABASE_URL: '', REDIS_URL: '', ...environment };
  const service = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const times = new Map<string, number>();
  const texts = Object.entries<string>(marks);
  let output = '';
  for await (const chunk of service.stdout) {
    output += chunk;
    const now = performance.now() - startedAt;
    for (const [mark, text] of texts) if (output.includes(text) && !times.has(mark)) times.set(mark, now);
    if (times.size === texts.length) break;
  }
  service.kill('SIGTERM');
  if (service.exitCode === null) await once(service, 'exit');
  if (times.size < texts.length) throw new Error(`The service printed only:\n${output}`);
  return Object.fromEntries(times) as Record<Mark, number>;
}

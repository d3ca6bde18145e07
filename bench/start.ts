import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { createTemporaryFolder } from '../test/support/temporary-folder.js';
import { THIS_CHECKOUT } from './checkout.js';
import { readNumber } from './option-values.js';
import { startPostgres } from './postgres.js';
import { median, printTable } from './table.js';

const OPTIONS = { rounds: { type: 'string', default: '3' } } as const;

type Environment = Readonly<Record<string, string>>;

/** From a command to the line that says that the service is ready: on a new DATA_DIR or database, and later. */
export async function benchStart(args: string[]): Promise<void> {
  const rounds = readNumber('rounds', parseArgs({ args, options: OPTIONS }).values.rounds);
  const times = new Map<string, [first: number[], later: number[]]>();
  const measure = async (name: string, run: () => Promise<number>) => {
    const [first, later] = times.get(name) ?? [[], []];
    times.set(name, [first, later]);
    first.push(await run());
    later.push(await run());
  };
  for (let round = 0; round < rounds; round += 1) {
    const dataDir = await createTemporaryFolder();
    await measure('the build, up to date', () => timeRun('node', ['scripts/build.js']));
    await measure('npm start', () => timeService({ DATA_DIR: dataDir }, /Try it with/));
    const postgres = await startPostgres();
    const environment = { DATABASE_URL: await postgres.createDatabase('start', THIS_CHECKOUT) };
    await measure('npm start with DATABASE_URL', () => timeService(environment, /listening/));
    await measure('npm run keys -- list with DATABASE_URL', () =>
      timeRun('npm', ['run', '--silent', 'keys', '--', 'list'], environment),
    );
    await postgres.close();
    await rm(dataDir, { recursive: true });
  }
  printTable({
    headings: ['ms until ready', 'first', 'later'],
    rows: [...times].map(([name, [first, later]]) => [
      name,
      Math.round(median(first)),
      Math.round(median(later)),
    ]),
  });
}

async function timeRun(program: string, args: readonly string[], environment?: Environment): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(program, args, { env: { ...process.env, ...environment }, stdio: 'ignore' });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}`);
  return performance.now() - startedAt;
}

/** Returns the milliseconds from `npm start` to the output that `ready` matches, and stops the service. */
async function timeService(environment: Environment, ready: RegExp): Promise<number> {
  const startedAt = performance.now();
  const env = { ...process.env, PORT: '0', DATABASE_URL: '', REDIS_URL: '', ...environment };
  const service = spawn('npm', ['start'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  let output = '';
  for await (const chunk of service.stdout) {
    output += chunk;
    if (ready.test(output)) break;
  }
  const milliseconds = performance.now() - startedAt;
  service.kill('SIGTERM');
  if (service.exitCode === null) await once(service, 'exit');
  if (!ready.test(output)) throw new Error(`The service printed only:\n${output}`);
  return milliseconds;
}

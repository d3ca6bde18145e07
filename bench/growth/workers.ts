import { type ChildProcess, fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import type { CaseName } from '../cases.js';
import { measure, planServers, type Stage, setStage } from '../requests.js';
import { type BenchServer, startServer } from '../servers.js';
import { median, printTable } from '../table.js';

const WORKERS = [1, 2];
const NAMES: CaseName[] = ['list20', 'get', 'create'];
/** Two for the workers, one for the load, one for PostgreSQL and Redis */
const ENOUGH_CORES = 4;

/** Requests per second with one and with two processes on all cores. Options: `--rounds=N`, `--seconds=N`. */
export async function growWorkers(options: ReadonlyMap<string, string>): Promise<void> {
  const stage = await setStage(false);
  const load = fork(new URL('../load.ts', import.meta.url));
  const servers: BenchServer[] = [];
  try {
    if (stage.redisUrl === undefined) {
      process.stdout.write('Several workers need Redis, and there is none here: not measured\n');
      return;
    }
    for (const count of WORKERS) servers.push(await startServer(planWorkers(stage, count)));
    await compare(load, servers, stage, options);
  } finally {
    load.disconnect();
    for (const server of servers) await server.close();
    await stage.close();
  }
}

function planWorkers(stage: Stage, count: number) {
  const plan = planServers(stage).find(({ name }) => name === 'service');
  if (plan === undefined) throw new Error('No service is planned');
  const environment = { ...plan.environment, WORKERS: String(count) };
  return { ...plan, name: `WORKERS=${count}`, environment, isPinned: false };
}

async function compare(
  load: ChildProcess,
  servers: readonly BenchServer[],
  { keys }: Stage,
  options: ReadonlyMap<string, string>,
): Promise<void> {
  const rounds = Number(options.get('rounds') ?? 3);
  const seconds = Number(options.get('seconds') ?? 3);
  const rates = new Map<string, number[]>();
  for (let round = 0; round <= rounds; round += 1) {
    for (const name of NAMES) {
      for (const server of servers) {
        const measured = await measure(load, server, name, keys, round === 0 ? 1.5 : seconds);
        const key = `${name} ${server.name}`;
        // The first round warms up.
        if (round > 0) rates.set(key, [...(rates.get(key) ?? []), measured.requests / measured.seconds]);
      }
    }
  }
  const find = (name: CaseName, server: BenchServer) => median(rates.get(`${name} ${server.name}`) ?? []);
  printTable(
    ['requests/s', ...servers.map(({ name }) => name), 'ratio'],
    NAMES.map((name) => {
      const [one = Number.NaN, two = Number.NaN] = servers.map((server) => find(name, server));
      return [name, Math.round(one), Math.round(two), (two / one).toFixed(2)];
    }),
  );
  const cores = availableParallelism();
  if (cores < ENOUGH_CORES) {
    process.stdout.write(
      `This machine has ${cores} cores, which the load, PostgreSQL and Redis need too: a second worker shows what it ` +
        `gains from ${ENOUGH_CORES} cores on.\n\n`,
    );
  }
}

import { resolve } from 'node:path';
import { type Backend, createBackend } from './backend.js';
import { THIS_CHECKOUT } from './checkout.js';
import { compileServers } from './compile.js';
import { addNetwork } from './network.js';
import { startPostgres } from './postgres.js';
import { printReport, type Report } from './report.js';
import { readRequestOptions } from './request-options.js';
import { writeResults } from './results.js';
import { measureRounds } from './rounds.js';
import { leaveServerCore } from './server-process.js';
import { isExample, startServer } from './servers.js';

/** Sends each case to the service and, for comparison, to others. */
export async function benchRequests(args: string[]): Promise<void> {
  const { names, caseIds, runs, folders, embedded, profile, write, ...values } = readRequestOptions(args);
  const importedModule = values.import === undefined ? undefined : resolve(values.import);
  leaveServerCore();
  const opened: { close(): Promise<void> }[] = [];
  const closeLater = <T extends { close(): Promise<void> }>(resource: T): T => {
    opened.push(resource);
    return resource;
  };
  try {
    const { folder } = closeLater(await compileServers(names.filter(isExample)));
    const postgres = closeLater(await startPostgres());
    const keyCount = Math.max(...runs.flatMap(({ loads }) => loads.map(({ keys }) => keys)));
    const addBackend = async (name: string, checkout: string) =>
      closeLater(await createBackend(postgres, { name, checkout, keyCount, withRedis: !embedded }));
    const current = await addBackend('current', THIS_CHECKOUT);
    const compared = new Map<string, Backend>();
    for (const [name, checkout] of folders) compared.set(name, await addBackend(name, resolve(checkout)));
    const isExhausted = caseIds.includes('overLimit');
    const reports: Report[] = [];
    for (const run of runs) {
      const reached = await reach({ current, compared }, run.networkMs, closeLater);
      const options = { folder, ...reached, isProfiled: profile, importedModule, isExhausted };
      const starts = names.map((name) => () => startServer(name, options));
      const report = { ...(await measureRounds(starts, caseIds, run)), names, caseIds, run };
      printReport(report);
      reports.push(report);
    }
    if (write) await writeResults(reports, current);
  } finally {
    for (const resource of opened.toReversed()) await resource.close();
  }
}

interface Backends {
  readonly current: Backend;
  readonly compared: ReadonlyMap<string, Backend>;
}

/** The backends as the servers of a run reach them. */
async function reach(
  { current, compared }: Backends,
  networkMs: number,
  closeLater: (backend: Backend) => Backend,
): Promise<Backends> {
  if (networkMs === 0) return { current, compared };
  const reached = new Map<string, Backend>();
  for (const [name, backend] of compared) reached.set(name, closeLater(await addNetwork(backend, networkMs)));
  return { current: closeLater(await addNetwork(current, networkMs)), compared: reached };
}

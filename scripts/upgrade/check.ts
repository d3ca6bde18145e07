import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OperatorError } from '@animal-store/platform/development';
import { exitWithError } from '../../packages/platform/src/process/exit.js';
import { definition } from '../../src/definition/definition.js';
import { type Creates, callEveryOperation } from './call-every-operation.js';
import type { Found } from './caller.js';
import { createMigratedDatabase } from './database.js';
import { fill } from './fill.js';
import { issueKeys } from './keys.js';
import { buildPrevious, findPrevious, ROOT } from './previous-version.js';
import { describeProblems, type Problem } from './problems.js';
import { type RunningService, startService } from './service.js';

/*
 * `npm run upgrade:check -- COMMIT` tries what an upgrade promises: nodes of the previous version (by default the last tag)
 * run on the database of this version. Exits with 1 if an operation of the old nodes fails, or if this version cannot read
 * what they wrote.
 */
const USAGE = 'Usage: npm run upgrade:check -- [COMMIT]';
/** Automake's exit code for a test that cannot run */
const SKIPPED = 77;
const SHUTDOWN = { operation: 'shutdown', call: 'SIGTERM' };

const [wanted, ...rest] = process.argv.slice(2);
if (rest.length > 0 || wanted?.startsWith('-')) exitWithError(definition.root, new OperatorError(USAGE), 2);

const interruption = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interruption.abort());
try {
  process.exitCode = await main(interruption.signal);
} catch (error) {
  if (interruption.signal.aborted) process.exit(1);
  exitWithError(definition.root, error, error instanceof OperatorError ? error.exitCode : 1);
}

async function main(signal: AbortSignal): Promise<number> {
  const previous = findPrevious(wanted);
  if (previous.commit === undefined) {
    process.stdout.write(`${previous.reason}\n`);
    return previous.isKnown ? 0 : SKIPPED;
  }
  // If started as root, PostgreSQL runs as another account, which must be able to enter the folder.
  const folder = await mkdtemp(join(tmpdir(), 'animal-store-upgrade-'));
  await chmod(folder, 0o711);
  try {
    const problems = await check(previous.commit, folder, signal);
    process.stdout.write(describeProblems(previous.name, problems));
    return problems.length > 0 ? 1 : 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Starts this version, the previous one and this one again on a database of this version, and calls everything that each has. */
async function check(commit: string, folder: string, signal: AbortSignal): Promise<Problem[]> {
  const previous = await buildPrevious(commit, folder, signal);
  const database = await createMigratedDatabase(folder, previous);
  try {
    signal.throwIfAborted();
    const keys = await issueKeys(database);
    const problems: Problem[] = [];
    const creates: Creates = [];
    const texts = new Set<string>();
    const callBuild = async (version: string, build: string, isReading: boolean) => {
      signal.throwIfAborted();
      process.stderr.write(`Calling ${version} …\n`);
      const stored = await database.countRequests();
      const service = await startService({ build, databaseUrl: database.serviceUrl, cwd: folder, signal });
      const round = { url: service.url, keys, creates, texts, isReading, signal };
      const called = await callEveryOperation(round).catch(async (error: unknown) => {
        await service.stop();
        throw error;
      });
      const found = await stop(service, called);
      // Usage is stored at the shutdown at the latest. A failure there is not the response to a call.
      if ((await database.countRequests()) === stored)
        found.push({ ...SHUTDOWN, cause: 'no usage was stored' });
      problems.push(...found.map((each) => ({ ...each, version })));
    };
    await callBuild('this version', ROOT, false);
    await fill(database.owner, texts);
    await callBuild('the previous version', previous, false);
    await callBuild('this version after the previous one', ROOT, true);
    return problems;
  } finally {
    await database.close();
  }
}

/** Resolves with the problems, for which the log has the reasons. */
async function stop(service: RunningService, found: readonly Found[]): Promise<Found[]> {
  const { code, causes } = await service.stop();
  const explained = found.map(({ requestId = '', cause, ...rest }) => ({
    ...rest,
    cause: causes.get(requestId) ?? cause,
  }));
  return code === 0 ? explained : [...explained, { ...SHUTDOWN, cause: `exit ${code}` }];
}

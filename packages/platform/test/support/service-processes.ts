import { rm } from 'node:fs/promises';
import {
  createCaller,
  createTemporaryFolder,
  type Environment,
  type Program,
} from '@animal-store/platform/testing';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { definition } from '#operations-under-test';
import { run } from './process.js';

interface ServiceProcesses {
  /** A folder that the tests of the file share, because the first start on one takes as long as two later ones. */
  readonly dataDir: string;
  /** What the test has started. It is stopped after the test. */
  readonly programs: Program[];
  /** Starts the built service on this DATA_DIR and a free port. */
  start(environment?: Environment): Program;
}

/** Lets the tests of a file run the service as processes of their own. */
export function setUpServiceProcesses(): ServiceProcesses {
  let dataDir: string;
  const programs: Program[] = [];
  beforeAll(async () => {
    dataDir = await createTemporaryFolder();
  });
  afterEach(async () => {
    for (const { child } of programs) child.kill('SIGTERM');
    await Promise.all(programs.splice(0).map(({ ended }) => ended));
  });
  afterAll(() => rm(dataDir, { recursive: true, force: true }));
  return {
    get dataDir() {
      return dataDir;
    },
    programs,
    start(environment = {}) {
      const program = run('main', [], { DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'info', ...environment });
      programs.push(program);
      return program;
    },
  };
}

/** The command that the service prints for its user to paste. */
const CURL = new RegExp(
  String.raw`curl -H 'Authorization: Bearer (${definition.identity.keyPrefix}test_\w+)' '(http:\/\/[\d.]+:\d+)(\/v1\/[^']+\?limit=5)'`,
);

/** Resolves when the service has printed its key. */
export async function untilReady(service: Program) {
  const [, key = '', url = '', path = ''] = await service.until(CURL);
  return { key, url, path, call: createCaller({ url, key }) };
}

/** Resolves with the exit code, or the signal that ended the process. */
export async function stop(service: Program, signal: NodeJS.Signals = 'SIGTERM') {
  service.child.kill(signal);
  return service.ended;
}

import { createCaller, type Environment, untilListening } from '@animal-store/platform/testing';
import { expect } from 'vitest';
import { list } from '#operations-under-test';
import { run, runKeys } from './process.js';

const closing: (() => unknown)[] = [];

/** Ends the services of a file, which calls it after all its tests. A hook here would be the first file's only. */
export async function closeNodes(): Promise<void> {
  for (const close of closing.splice(0)) await close();
}

/** Starts a service, which runs until `closeNodes`. Resolves with its URL. */
export async function startNode(environment: Environment): Promise<string> {
  const program = run('main', [], { ...environment, APP_ENV: 'staging', PORT: '0' });
  closing.push(() => {
    program.child.kill('SIGTERM');
    return program.ended;
  });
  return untilListening(program);
}

export function startTwoNodes(environment: Environment): Promise<string[]> {
  return Promise.all([startNode(environment), startNode(environment)]);
}

/** Issues a key. `untilAll` calls all nodes with it, all the time, until they respond alike: no lookup expires unused. */
export async function useNewKey(environment: Environment, urls: readonly string[], ...plan: string[]) {
  const { id, key } = await runKeys(environment, 'create', '--name', 'x', '--plan', ...plan);
  const calls = urls.map((url) => createCaller({ url, key }));
  const codes = () =>
    Promise.all(
      calls.map(async (call) => {
        const { status, body } = await call(list.path);
        return status === 200 ? 200 : body.code;
      }),
    );
  const untilAll = (code: unknown) => expect.poll(codes, { interval: 50 }).toEqual(calls.map(() => code));
  return { id, key, calls, untilAll };
}

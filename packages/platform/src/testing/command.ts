import { Writable } from 'node:stream';
import { runCommand } from '../cli/program.js';
import type { Definition } from '../definition/definition.js';
import type { Resource } from '../operations/resource.js';

/** What a command has left behind: its exit code, and what it has written to standard output and error together. */
export interface Outcome {
  readonly code: number;
  readonly output: string;
}

/** What `process.exit` throws here, so that nothing of the command runs after it. */
class Exit extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`The command exits with ${code}`);
    this.code = code;
  }
}

/** Commands take turns, because each has the variables and the output of the process for itself. */
let last: Promise<unknown> = Promise.resolve();

/** Runs a command of a store in this process, with an environment of its own. */
export function runInProcess(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  { definition, resources }: { readonly definition: Definition; readonly resources: readonly Resource[] },
): Promise<Outcome> {
  const outcome = last.then(() => runAlone(args, environment, definition, resources));
  last = outcome.catch(() => {});
  return outcome;
}

async function runAlone(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  definition: Definition,
  resources: readonly Resource[],
): Promise<Outcome> {
  let output = '';
  const write = (chunk: unknown, _encoding: string, done: () => void) => {
    output += chunk;
    done();
  };
  const exit = (code?: number) => {
    throw new Exit(code ?? 0);
  };
  const { exitCode } = process;
  const { argv, env: ownEnv, stdout, stderr, exit: ownExit } = Object.getOwnPropertyDescriptors(process);
  Object.defineProperties(process, {
    argv: { value: [...process.argv.slice(0, 2), ...args] },
    env: { value: env },
    stdout: { value: new Writable({ write }) },
    stderr: { value: new Writable({ write }) },
    exit: { value: exit },
  });
  process.exitCode = undefined;
  try {
    await runCommand({ definition, loadResources: async () => resources });
    return { code: Number(process.exitCode ?? 0), output };
  } catch (error) {
    if (error instanceof Exit) return { code: error.code, output };
    throw error;
  } finally {
    Object.defineProperties(process, { argv, env: ownEnv, stdout, stderr, exit: ownExit });
    process.exitCode = exitCode;
  }
}

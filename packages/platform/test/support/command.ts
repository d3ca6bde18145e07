import { Writable } from 'node:stream';
import { definition as ownDefinition, resources as ownResources } from '#operations-under-test';
import { runCommand } from '../../src/cli/program.js';
import type { Definition } from '../../src/definition/definition.js';
import type { Resource } from '../../src/operations/resource.js';
import { asServiceUnlessOwner, INHERITED } from './environment.js';

/** What a command has left behind: its exit code, and what it has written to standard output and error together. */
interface Outcome {
  readonly code: number;
  readonly output: string;
}

interface InProcessOptions {
  /** What the store is called, sells and allows. Default: as the store under test */
  readonly definition?: Definition;
  /** What the command line knows besides the resources of the store */
  readonly furtherResources?: readonly Resource[];
  /** Whether the DATABASE_URL of the owner stays as it is, as it does for the commands of the owner */
  readonly asOwner?: boolean;
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

/**
 * Runs a command of the command line in the process of the tests, from the sources: to start a process takes ten times as
 * long as most commands. `run('cli', …)` runs the built one as its users do.
 */
export function runInProcess(
  args: readonly string[],
  environment: Record<string, string>,
  { definition = ownDefinition, furtherResources = [], asOwner = false }: InProcessOptions = {},
): Promise<Outcome> {
  const resources = [...ownResources, ...furtherResources];
  const variables = asOwner ? environment : asServiceUnlessOwner(environment, args);
  const outcome = last.then(() => runAlone(args, { ...INHERITED, ...variables }, definition, resources));
  last = outcome.catch(() => {});
  return outcome;
}

async function runAlone(
  args: readonly string[],
  env: Record<string, string>,
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

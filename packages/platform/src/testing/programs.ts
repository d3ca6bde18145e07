import { fileURLToPath } from 'node:url';
import type { Definition } from '../definition/definition.js';
import type { Resource } from '../operations/resource.js';
import { type Outcome, runInProcess } from './command.js';
import { type Environment, INHERITED, type Program, runNode } from './process.js';
import { asServiceRole } from './servers.js';

/** The commands for the owner of the tables. */
const OWNER_COMMANDS = ['migrate', 'seed', 'studio'];

interface InProcessOptions {
  /** Default: that of the store */
  readonly definition?: Definition;
  /** What the command line knows besides the resources of the store */
  readonly furtherResources?: readonly Resource[];
  /** Whether the DATABASE_URL of the owner stays as it is, as it does for the commands of the owner */
  readonly asOwner?: boolean;
}

/** The programs of a store, dist/main.js and dist/cli.js, and its commands. */
export function createPrograms(store: {
  readonly definition: Definition;
  readonly resources: readonly Resource[];
}) {
  const { definition } = store;
  /** With the DATABASE_URL of the role with the documented grants in place of the owner's, unless the command is for the owner */
  const asServiceUnlessOwner = (environment: Environment, [command = '']: readonly string[]): Environment => {
    const { DATABASE_URL } = environment;
    return DATABASE_URL === undefined || OWNER_COMMANDS.includes(command)
      ? environment
      : { ...environment, DATABASE_URL: asServiceRole(definition, DATABASE_URL) };
  };
  /** The path of a built program */
  const programOf = (script: string) => fileURLToPath(new URL(`dist/${script}.js`, definition.root));
  /** Runs a built program, as the role with the documented grants. */
  const run = (script: string, args: readonly string[], environment: Environment, cwd?: string): Program =>
    runNode([programOf(script), ...args], asServiceUnlessOwner(environment, args), cwd);
  /**
   * Runs a command of the command line in the process of the tests, from the sources: to start a process takes ten times as
   * long as most commands. `run('cli', …)` runs the built one as its users do.
   */
  const runStoreInProcess = (
    args: readonly string[],
    environment: Environment,
    { definition = store.definition, furtherResources = [], asOwner = false }: InProcessOptions = {},
  ): Promise<Outcome> => {
    const variables = asOwner ? environment : asServiceUnlessOwner(environment, args);
    const resources = [...store.resources, ...furtherResources];
    return runInProcess(args, { ...INHERITED, ...variables }, { definition, resources });
  };
  /**
   * Runs a command of `keys`, which has to succeed. Resolves with the JSON that it prints. On the embedded default it is a
   * process of its own, because that is how it shares a PostgreSQL with others.
   */
  const runKeys = async (environment: Environment, ...args: readonly string[]) => {
    const command = ['keys', ...args, '--json'];
    if (environment.DATABASE_URL !== undefined)
      return readJson(await runStoreInProcess(command, environment));
    const program = run('cli', command, environment);
    return readJson({ code: await program.ended, output: program.output() });
  };
  return { programOf, run, runInProcess: runStoreInProcess, runKeys };
}

/** The JSON that a command has printed, which has to have succeeded. */
export function readJson({ code, output }: { readonly code: unknown; readonly output: string }) {
  if (code !== 0) throw new Error(`The command ended with ${code}:\n${output}`);
  return JSON.parse(output);
}

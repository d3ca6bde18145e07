import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import { definition } from '#operations-under-test';
import { runInProcess } from './command.js';
import { endWithTests } from './end-with-tests.js';
import { asServiceUnlessOwner, INHERITED } from './environment.js';

/** The folder of the store whose programs are run */
const STORE = fileURLToPath(definition.root);

/** The path of a built program of the store */
export const programOf = (script: Script) => `${STORE}dist/${script}.js`;

/** The address of a module of the platform, as programs of the store load it */
export const builtModule = (path: string) =>
  pathToFileURL(`${STORE}dist/node_modules/@animal-store/platform/dist/${path}`).href;

/** A process of the built service or its command line, with everything it has written so far. */
export interface Program {
  readonly child: ChildProcess;
  /** Standard output and error together */
  readonly output: () => string;
  /** Resolves with the first match in the output; rejects if the process exits first, or after 50 s. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves with the exit code, or with the signal that ended the process. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

export type Environment = Record<string, string>;

/** The options of `keys create` for limits that no test reaches. */
export const UNREACHED_LIMITS = [
  ...['--plan', 'enterprise'],
  ...['--per-minute', '1000000'],
  ...['--per-day', '1000000'],
] as const;

/** `with-deprecated`: of the platform's own store, with the operation of deprecated.ts as well */
type Script = 'main' | 'cli' | 'with-deprecated';

/**
 * Runs dist/main.js or dist/cli.js, which the test setup has built. A DATABASE_URL of the owner becomes that of
 * the role with the documented grants, except for the owner's commands.
 */
export function run(
  script: Script,
  args: readonly string[],
  environment: Environment,
  cwd?: string,
): Program {
  return runNode([programOf(script), ...args], asServiceUnlessOwner(environment, args), cwd);
}

/** Runs node with any arguments. */
export function runNode(
  args: readonly string[],
  environment: Environment,
  cwd?: string,
  options: Omit<RunOptions, 'cwd'> = {},
): Program {
  return runCommand(process.execPath, args, environment, { ...options, ...(cwd !== undefined && { cwd }) });
}

/**
 * Runs a command of `keys`, which has to succeed. Resolves with the JSON that it prints. On the embedded default it is a
 * process of its own, because that is how it shares a PostgreSQL with others.
 */
export async function runKeys(environment: Environment, ...args: readonly string[]) {
  const command = ['keys', ...args, '--json'];
  if (environment.DATABASE_URL !== undefined) return readJson(await runInProcess(command, environment));
  const program = run('cli', command, environment);
  return readJson({ code: await program.ended, output: program.output() });
}

/** The JSON that a command has printed, which has to have succeeded. */
export function readJson({ code, output }: { readonly code: unknown; readonly output: string }) {
  expect(code, output).toBe(0);
  return JSON.parse(output);
}

/** Resolves with the URL of a started service when it listens. */
export async function untilListening(service: Program): Promise<string> {
  const [, url = ''] = await service.until(/listening on (http:\/\/[\d.]+:\d+)/);
  return url;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly detached?: boolean;
  /** Root can run a program as another user. */
  readonly account?: { readonly uid: number; readonly gid: number } | undefined;
  /** A file descriptor in place of the pipe whose content is in the output */
  readonly stdout?: number;
}

/** A soak logs more than a string can hold, and reads it line by line. */
const MAX_OUTPUT_CHARACTERS = 2 ** 27;

export function runCommand(
  command: string,
  args: readonly string[],
  environment: Environment,
  { cwd = process.cwd(), detached = false, account, stdout }: RunOptions = {},
): Program {
  const child = spawn(command, args, {
    cwd,
    detached,
    ...account,
    env: { ...INHERITED, ...environment },
    stdio: ['ignore', stdout ?? 'pipe', 'pipe'],
  });
  endWithTests(child);
  let output = '';
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk) => {
      if (output.length < MAX_OUTPUT_CHARACTERS) output += chunk;
      for (const listener of listeners) listener();
    });
  }
  const ended = once(child, 'close').then(([code, signal]) => code ?? signal);
  const until = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const fail = (reason: string) => reject(new Error(`${reason} before ${pattern} in:\n${output}`));
      const timeout = setTimeout(() => fail('50 s passed'), 50_000);
      const search = () => {
        const match = pattern.exec(output);
        if (match === null) return;
        clearTimeout(timeout);
        listeners.delete(search);
        resolve(match);
      };
      listeners.add(search);
      search();
      void ended.then((code) => fail(`the process ended (${code})`));
    });
  return { child, output: () => output, until, ended };
}

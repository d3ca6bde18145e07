import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { endWithTests } from '@animal-store/limits/testing';

/** The variables that a started process inherits: nothing that could point it at a database or at Redis. */
export const INHERITED: Environment = Object.fromEntries(
  ['PATH', 'HOME', 'LANG', 'TMPDIR', 'NODE_COMPILE_CACHE'].flatMap((name) =>
    process.env[name] ? [[name, process.env[name]]] : [],
  ),
);

/** A process, with everything it has written so far. */
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

/** Resolves with the URL of a started service when it listens. */
export async function untilListening(service: Program): Promise<string> {
  const [, url = ''] = await service.until(/listening on (http:\/\/[\d.]+:\d+)/);
  return url;
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

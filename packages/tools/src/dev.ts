import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { StoreFolder } from './store.js';

/** How long the changes of a schema are collected: editors write a file in several steps. */
const COLLECT_MS = 100;
/** The last line of each build of `tsc --watch` */
const BUILT = /Found (\d+) errors?\./;

/**
 * Builds a store and runs its service, whose process restarts after each build that has changed something. `tsc --watch` builds,
 * `node --watch` restarts, and a changed schema is generated anew. A build that fails leaves the service as it is.
 *
 * @returns the exit code of the service after a signal, once nothing that was started is left
 */
export async function develop(store: StoreFolder): Promise<number> {
  const programs = createPrograms(store);
  const stopWatching = watchSchema(store, () => programs.run('prisma', ['generate']));
  try {
    await programs.run('prisma', ['generate']);
    if (!programs.isEnding()) compile(store, programs);
    return await programs.ended;
  } finally {
    stopWatching();
  }
}

function compile(store: StoreFolder, programs: Programs): void {
  const colours = process.stdout.isTTY ? ['--pretty'] : [];
  const compiler = programs.start('tsc', ['--build', '--watch', '--preserveWatchOutput', ...colours], 'pipe');
  let isServed = false;
  const lines = createInterface({ input: compiler.stdout as NodeJS.ReadableStream });
  lines.on('line', (line) => {
    process.stdout.write(`${line}\n`);
    const [, errors] = BUILT.exec(line) ?? [];
    if (errors === undefined || programs.isEnding()) return;
    if (errors !== '0') {
      process.stderr.write('The build failed: mend it, and the next change builds again.\n');
    } else if (!isServed) {
      isServed = true;
      programs.start('node', ['--watch', '--watch-preserve-output', store.pathOf('main')], 'inherit');
    }
  });
}

/** Generates Prisma's client anew after a change of the schema. Returns what ends that. */
function watchSchema({ root }: StoreFolder, generate: () => Promise<void>): () => void {
  let timer: NodeJS.Timeout | undefined;
  let last = Promise.resolve();
  const watcher = watch(new URL('prisma/', root), (_event, name) => {
    if (!name?.endsWith('.prisma')) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      last = last.then(generate);
    }, COLLECT_MS);
  });
  return () => {
    clearTimeout(timer);
    watcher.close();
  };
}

type Programs = ReturnType<typeof createPrograms>;

/** The processes that this one starts. A signal to this one ends them all, and so does the end of one that was to go on. */
function createPrograms({ root }: StoreFolder) {
  const cwd = fileURLToPath(root);
  const PATH = [join(cwd, 'node_modules/.bin'), process.env.PATH].join(delimiter);
  const running = new Map<ChildProcess, Promise<number | null>>();
  const ending = new AbortController();
  let exitCode = 0;
  const ended = once(ending.signal, 'abort').then(async () => {
    await Promise.all(running.values());
    return exitCode;
  });
  const end = (signal: NodeJS.Signals) => {
    // Node.js, while it watches, passes on the other two.
    for (const child of running.keys()) child.kill(signal === 'SIGHUP' ? 'SIGTERM' : signal);
    ending.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
  const open = (command: string, args: readonly string[], stdout: 'pipe' | 'inherit') => {
    const stdio: StdioOptions = ['ignore', stdout, 'inherit'];
    const child = spawn(command, args, { cwd, stdio, env: { ...process.env, PATH } });
    const closed = once(child, 'close').then(
      ([code]): number | null => code,
      (error: Error) => {
        process.stderr.write(
          `${command} cannot be started (${error.message}): install it with: npm install\n`,
        );
        return 1;
      },
    );
    running.set(child, closed);
    return { child, closed: closed.finally(() => running.delete(child)) };
  };
  return {
    isEnding: () => ending.signal.aborted,
    /** Resolves with an exit code after a signal, when all have ended. */
    ended,
    /** Runs a program, and goes on whether it succeeds or not: it has said why. */
    run: async (command: string, args: readonly string[]) =>
      void (await open(command, args, 'inherit').closed),
    /** Starts a program that goes on until a signal. The service's, whose output is not read here, decides on the exit code. */
    start(command: string, args: readonly string[], stdout: 'pipe' | 'inherit') {
      const { child, closed } = open(command, args, stdout);
      void closed.then((code) => {
        const isUnforeseen = !ending.signal.aborted;
        if (stdout === 'inherit' || isUnforeseen) exitCode = code ?? (isUnforeseen ? 1 : 0);
        if (isUnforeseen) end('SIGTERM');
      });
      return child;
    },
  };
}

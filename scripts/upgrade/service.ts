import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { OperatorError } from '@animal-store/platform/development';

/** pino's level of what is a defect */
const ERROR_LEVEL = 50;
/** A build that takes longer to listen, or to end, is killed, so that the check fails and does not hang. */
const MAX_START_MS = 120_000;
const MAX_STOP_MS = 60_000;
/** The inherited variables: none that could point a service at another database, or at Redis */
const INHERITED = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'NODE_COMPILE_CACHE'];

export interface RunningService {
  readonly url: string;
  /** Resolves with the exit code or the signal, and with what the log says of each request that failed. */
  stop(): Promise<{ code: number | NodeJS.Signals | null; causes: ReadonlyMap<string, string> }>;
}

interface Options {
  /** The folder of the build */
  readonly build: string;
  readonly databaseUrl: string;
  /** Without an `.env` */
  readonly cwd: string;
  readonly signal: AbortSignal;
}

/** Starts a build on a database and a free port. */
export async function startService({ build, databaseUrl, cwd, signal }: Options): Promise<RunningService> {
  const inherited = INHERITED.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []));
  const child = spawn(process.execPath, [join(build, 'dist/main.js')], {
    cwd,
    env: { ...Object.fromEntries(inherited), APP_ENV: 'production', PORT: '0', DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
    killSignal: 'SIGKILL',
  });
  const ended = untilEnded(child);
  const causes = new Map<string, string>();
  const kill = () => child.kill('SIGKILL');
  const starting = setTimeout(kill, MAX_START_MS);
  const url = await untilListening(child, causes).finally(() => clearTimeout(starting));
  signal.throwIfAborted();
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      const stopping = setTimeout(kill, MAX_STOP_MS);
      const code = await ended;
      clearTimeout(stopping);
      return { code, causes };
    },
  };
}

/** Resolves with the exit code of a process, or with the signal that has ended it, once nothing of it is left. */
export function untilEnded(child: ChildProcess): Promise<number | NodeJS.Signals | null> {
  // An interruption, or a failed start, is reported before the end.
  child.on('error', () => {});
  return new Promise((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
}

/** Resolves with the URL, and reads the log before and after. */
function untilListening(child: ChildProcess, causes: Map<string, string>): Promise<string> {
  let output = '';
  return new Promise((resolve, reject) => {
    for (const input of [child.stdout, child.stderr]) {
      createInterface({ input: input as NodeJS.ReadableStream }).on('line', (line) => {
        const [, url] = /listening on (http:\/\/[\d.]+:\d+)/.exec(line) ?? [];
        if (url !== undefined) resolve(url);
        readCause(line, causes);
        output = `${output}${line}\n`.slice(-4_000);
      });
    }
    child.once('close', (code) => reject(new OperatorError(`The service ended (${code}):\n${output}`)));
  });
}

function readCause(line: string, causes: Map<string, string>): void {
  // The last line of a killed process may be incomplete.
  if (!line.startsWith('{"level":') || !line.endsWith('}')) return;
  const { level, reqId, err, msg } = JSON.parse(line);
  if (level >= ERROR_LEVEL && reqId !== undefined) {
    // Prisma puts the reason last.
    const lines = String(err?.message ?? msg).split('\n');
    causes.set(reqId, lines.findLast((text) => text !== '') ?? '');
  }
}

import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from './free-port.js';
import { type Program, runCommand } from './process.js';
import { hasProgram } from './programs.js';
import { createTemporaryFolder } from './temporary-folder.js';

const CONFIG = 'docs/deploy/haproxy.cfg';

/** Where a replica serves requests and health checks. */
export interface Replica {
  readonly PORT: string;
  readonly METRICS_PORT: string;
}

/** HAProxy with the configuration that compose.yaml uses, in front of two replicas on this machine. */
export interface Haproxy {
  readonly url: string;
  /** Of the process whose child does the work */
  readonly pid: number | undefined;
  /** Resolves when it has noticed, for the first time, that a replica, counted from 1, went down or came back. */
  until(replica: number, state: 'UP' | 'DOWN'): Promise<unknown>;
  /** Resolves when it has found both replicas down at once. */
  untilNoneReady(): Promise<unknown>;
  close(): Promise<void>;
}

export const hasHaproxy = () => hasProgram('haproxy', '-v');

export async function startHaproxy(replicas: readonly [Replica, Replica]): Promise<Haproxy> {
  const folder = await createTemporaryFolder();
  const file = join(folder, 'haproxy.cfg');
  const port = await freePort();
  await writeFile(file, relocate(await readFile(CONFIG, 'utf8'), port, replicas));
  const program: Program = runCommand('haproxy', ['-W', '-db', '-f', file], {});
  await program.until(/Loading success/);
  return {
    url: `http://127.0.0.1:${port}`,
    pid: program.child.pid,
    until: (replica, state) => program.until(new RegExp(`replicas/store-${replica} is ${state}`)),
    untilNoneReady: () => program.until(/replicas has no server available/),
    async close() {
      program.child.kill('SIGTERM');
      await program.ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Replaces the addresses that exist in containers only. */
function relocate(config: string, port: number, replicas: readonly Replica[]): string {
  const edits: [string, string][] = [
    ['bind :8080', `bind 127.0.0.1:${port}`],
    ...replicas.map(({ PORT, METRICS_PORT }, index): [string, string] => [
      `store-${index + 1}:3000`,
      `127.0.0.1:${PORT} port ${METRICS_PORT}`,
    ]),
  ];
  return edits.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`${CONFIG} has no ${from}`);
    return text.replaceAll(from, to);
  }, config);
}

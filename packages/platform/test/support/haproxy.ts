import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort, hasProgram } from '@animal-store/limits/testing';
import { createTemporaryFolder, type Program, runCommand, until } from '@animal-store/platform/testing';

const CONFIG = 'docs/deploy/haproxy.cfg';
/** A replica is checked once a second, and a busy machine takes its time. */
const STATE_TIMEOUT_MS = 50_000;

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
  /** Resolves when a replica, counted from 1, is down or up by what it has last found. */
  until(replica: number, state: 'UP' | 'DOWN'): Promise<unknown>;
  /** Resolves when both are down. */
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
  // A busy machine answers a check late, so a replica may go down and come back at any time: its last state counts.
  const isDown = (replica: number) => {
    const report = new RegExp(`^Server replicas/store-${replica} is (UP|DOWN)`, 'gm');
    return [...program.output().matchAll(report)].at(-1)?.[1] === 'DOWN';
  };
  return {
    url: `http://127.0.0.1:${port}`,
    pid: program.child.pid,
    until: (replica, state) =>
      until(() => isDown(replica) === (state === 'DOWN') || undefined, STATE_TIMEOUT_MS),
    untilNoneReady: () => until(() => (isDown(1) && isDown(2)) || undefined, STATE_TIMEOUT_MS),
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
    ...replicas.flatMap(({ PORT, METRICS_PORT }, index): [string, string][] => [
      [`store-${index + 1}:3000\n`, `127.0.0.1:${PORT} port ${METRICS_PORT}\n`],
      // What nothing checks
      [`store-${index + 1}:3000 `, `127.0.0.1:${PORT} `],
    ]),
  ];
  return edits.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`${CONFIG} has no ${from}`);
    return text.replaceAll(from, to);
  }, config);
}

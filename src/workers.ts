import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** A worker that dies sooner than this, in milliseconds, is started again later each time. */
const STEADY_AFTER_MS = 10_000;
const RESTART_DELAY_MS = { first: 250, last: 15_000 } as const;

export interface WorkersOptions {
  readonly count: number;
  /** Added to the environment of every worker */
  readonly environment: Readonly<Record<string, string>>;
  /** Resolves when the workers shall end */
  readonly stop: Promise<unknown>;
  readonly onListening: (address: { port: number }) => void;
  readonly warn: (message: string) => void;
}

/**
 * Runs several processes of this service that share its port. One that dies is started again, at once or, when it dies
 * young, after a delay that doubles. Ends when they have: drained one after the other, so that the port is served to
 * the last.
 */
export async function runWorkers({
  count,
  environment,
  stop,
  onListening,
  warn,
}: WorkersOptions): Promise<void> {
  const stopping = new AbortController();
  const slots = Array.from({ length: count }, () => ({ worker: undefined as Worker | undefined }));
  cluster.once('listening', (_worker, address) => onListening(address));
  const running = slots.map((slot) => keepAlive(slot, { environment, stopping: stopping.signal, warn }));
  await stop;
  stopping.abort();
  for (const { worker } of slots) {
    if (worker === undefined || worker.isDead()) continue;
    worker.process.kill('SIGTERM');
    await once(worker, 'exit');
  }
  await Promise.all(running);
}

async function keepAlive(
  slot: { worker: Worker | undefined },
  { environment, stopping, warn }: Pick<WorkersOptions, 'environment' | 'warn'> & { stopping: AbortSignal },
): Promise<void> {
  let restartDelay: number = RESTART_DELAY_MS.first;
  while (!stopping.aborted) {
    const startedAt = Date.now();
    const worker = cluster.fork(environment);
    slot.worker = worker;
    const [code, signal] = await once(worker, 'exit');
    if (stopping.aborted) return;
    const isSteady = Date.now() - startedAt >= STEADY_AFTER_MS;
    restartDelay = isSteady ? RESTART_DELAY_MS.first : Math.min(restartDelay * 2, RESTART_DELAY_MS.last);
    warn(`worker ${worker.process.pid} ended (${signal ?? code}); another starts in ${restartDelay} ms`);
    await delay(restartDelay, undefined, { signal: stopping }).catch(() => {});
  }
}

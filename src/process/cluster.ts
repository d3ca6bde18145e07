import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../errors/operator-error.js';

/** A worker that dies sooner than this after its start is restarted with a growing delay. */
const STABLE_AFTER_MS = 10_000;
const MIN_RESTART_DELAY_MS = 250;
const MAX_RESTART_DELAY_MS = 15_000;
/** All workers are told to shut down within this time, however long each of them takes. */
export const DRAIN_SPREAD_MS = 500;
/** A worker that is still running this long after the first was told to shut down is killed. */
const KILL_AFTER_MS = 10_500;

export interface ClusterOptions {
  readonly count: number;
  /** Added to the environment of every worker */
  readonly environment: Readonly<Record<string, string>>;
  /** Resolves when the workers are to shut down */
  readonly shutdown: Promise<unknown>;
  /** Called with each worker when it starts; one that replaces another has its index. */
  readonly onFork: (index: number, worker: Worker) => void;
  readonly onListening: (address: { port: number }) => void;
  readonly warn: (message: string) => void;
}

/**
 * Runs several processes of this service that share its port. One that dies is restarted after a delay, which doubles
 * while they keep dying early. Resolves when all have drained, one after the other.
 *
 * @throws OperatorError when a worker exits before any is listening: restarting it would not help
 */
export async function runCluster(options: ClusterOptions): Promise<void> {
  const stopping = new AbortController();
  const slots = Array.from({ length: options.count }, () => ({ worker: undefined as Worker | undefined }));
  let hasListened = false;
  cluster.once('listening', (_worker, address) => {
    hasListened = true;
    options.onListening(address);
  });
  const keepAliveOptions = { ...options, stopping: stopping.signal, hasListened: () => hasListened };
  const running = slots.map((slot, index) => keepAlive(slot, index, keepAliveOptions));
  await Promise.race([options.shutdown, Promise.all(running)]);
  stopping.abort();
  const kill = setTimeout(() => {
    for (const { worker } of slots) worker?.process.kill('SIGKILL');
  }, KILL_AFTER_MS);
  await drainOneByOne(slots.flatMap(({ worker }) => worker ?? []));
  await Promise.all(running);
  clearTimeout(kill);
}

/**
 * Shuts the workers down one by one, so that the remaining ones accept the connections that a draining one no longer
 * does. A worker with long requests delays the next one by its share of DRAIN_SPREAD_MS at most.
 */
async function drainOneByOne(workers: readonly Worker[]): Promise<void> {
  for (const worker of workers) {
    const ended = worker.isDead() ? undefined : once(worker, 'exit');
    worker.process.kill('SIGTERM');
    await Promise.race([ended, delay(DRAIN_SPREAD_MS / workers.length)]);
  }
}

interface KeepAliveOptions extends Pick<ClusterOptions, 'environment' | 'onFork' | 'warn'> {
  readonly stopping: AbortSignal;
  readonly hasListened: () => boolean;
}

async function keepAlive(
  slot: { worker: Worker | undefined },
  index: number,
  { environment, stopping, onFork, warn, hasListened }: KeepAliveOptions,
): Promise<void> {
  let restartDelay = MIN_RESTART_DELAY_MS;
  while (!stopping.aborted) {
    const startedAt = Date.now();
    const worker = cluster.fork(environment);
    slot.worker = worker;
    onFork(index, worker);
    const [code, signal] = await once(worker, 'exit');
    if (stopping.aborted) return;
    if (!hasListened())
      throw new OperatorError(`A worker exited with ${signal ?? code} before any was listening.`);
    const isStable = Date.now() - startedAt >= STABLE_AFTER_MS;
    restartDelay = isStable ? MIN_RESTART_DELAY_MS : Math.min(restartDelay * 2, MAX_RESTART_DELAY_MS);
    warn(`worker ${worker.process.pid} ended (${signal ?? code}); another starts in ${restartDelay} ms`);
    await delay(restartDelay, undefined, { signal: stopping }).catch(() => {});
  }
}

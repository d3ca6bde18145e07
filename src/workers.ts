import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from './operator-error.js';

/** A worker that dies sooner than this, in milliseconds, is started again later each time. */
const STEADY_AFTER_MS = 10_000;
const RESTART_DELAY_MS = { first: 250, last: 15_000 } as const;
/** From the first worker that is told to end to the last, in milliseconds, however long each of them takes. */
export const DRAIN_SPREAD_MS = 500;
/** A worker that has not ended so long after the first was told to, in milliseconds, is stuck. */
const KILL_AFTER_MS = 10_500;

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
 * Runs several processes of this service that share its port. One that dies is started again after a delay, which
 * doubles while they die young. Ends when all have drained, one after the other.
 *
 * @throws OperatorError when a worker ends before any has come to listen: the others would fare no better
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
  let hasListened = false;
  cluster.once('listening', (_worker, address) => {
    hasListened = true;
    onListening(address);
  });
  const options = { environment, stopping: stopping.signal, warn, hasListened: () => hasListened };
  const running = slots.map((slot) => keepAlive(slot, options));
  await Promise.race([stop, Promise.all(running)]);
  stopping.abort();
  const kill = setTimeout(() => {
    for (const { worker } of slots) worker?.process.kill('SIGKILL');
  }, KILL_AFTER_MS);
  await drainInTurn(slots.flatMap(({ worker }) => worker ?? []));
  await Promise.all(running);
  clearTimeout(kill);
}

/**
 * Each is told to end when the one before has ended: what that one no longer accepts, those behind it do. A worker with
 * long requests holds up the others for its share of the spread only, so that all have stopped accepting soon.
 */
async function drainInTurn(workers: readonly Worker[]): Promise<void> {
  for (const worker of workers) {
    const ended = worker.isDead() ? undefined : once(worker, 'exit');
    worker.process.kill('SIGTERM');
    await Promise.race([ended, delay(DRAIN_SPREAD_MS / workers.length)]);
  }
}

interface KeepAliveOptions extends Pick<WorkersOptions, 'environment' | 'warn'> {
  readonly stopping: AbortSignal;
  readonly hasListened: () => boolean;
}

async function keepAlive(
  slot: { worker: Worker | undefined },
  { environment, stopping, warn, hasListened }: KeepAliveOptions,
): Promise<void> {
  let restartDelay: number = RESTART_DELAY_MS.first;
  while (!stopping.aborted) {
    const startedAt = Date.now();
    const worker = cluster.fork(environment);
    slot.worker = worker;
    const [code, signal] = await once(worker, 'exit');
    if (stopping.aborted) return;
    if (!hasListened())
      throw new OperatorError(`A worker ended with ${signal ?? code} before any could listen.`);
    const isSteady = Date.now() - startedAt >= STEADY_AFTER_MS;
    restartDelay = isSteady ? RESTART_DELAY_MS.first : Math.min(restartDelay * 2, RESTART_DELAY_MS.last);
    warn(`worker ${worker.process.pid} ended (${signal ?? code}); another starts in ${restartDelay} ms`);
    await delay(restartDelay, undefined, { signal: stopping }).catch(() => {});
  }
}

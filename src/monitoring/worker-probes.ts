import type { Worker } from 'node:cluster';
import { createBirpc } from 'birpc';
import { AggregatorRegistry, type Registry } from 'prom-client';
import { ApiError } from '../errors/api-error.js';
import { isReady, type Readiness } from './health.js';
import { createProcessRegistry, SAME_IN_EVERY_WORKER } from './metrics.js';
import type { CollectedMetrics, Probes, ProcessProbes } from './probes.js';

/** How long a worker may take to answer: longer than its check of the database, and less than Prometheus waits. */
const WORKER_TIMEOUT_MS = 2_500;
/** How long the primary process may take to answer, which waits for the workers. */
const PRIMARY_TIMEOUT_MS = 4_000;

type WorkerFunctions = Pick<ProcessProbes, 'collectMetrics' | 'isLive' | 'readReadiness'>;
type PrimaryFunctions = Pick<Probes, 'readMetrics'>;

/**
 * The probes of all workers together, as the primary process sees them.
 *
 * prom-client's own clusterMetrics() fails as a whole when one worker dies, stalls or is still starting. Here a worker
 * that does not answer in time is left out, and `worker_up` says so. prom-client still combines the answers.
 */
export class WorkerProbes implements Probes {
  readonly #slots: readonly { worker: WorkerFunctions | undefined }[];
  readonly #own: Registry = createProcessRegistry();
  #isClosing = false;
  #running: Promise<string> | undefined;

  constructor(count: number) {
    this.#slots = Array.from({ length: count }, () => ({ worker: undefined }));
  }

  /** Asks this worker from the moment it listens until it ends. `index` is the same for the one that replaces it. */
  add(index: number, worker: Worker): void {
    const slot = this.#slots[index];
    if (slot === undefined) return;
    const readMetrics = () => this.readMetrics();
    const remote = createBirpc<WorkerFunctions, PrimaryFunctions>(
      { readMetrics },
      { ...toChannel(worker), timeout: WORKER_TIMEOUT_MS },
    );
    worker.once('listening', () => {
      slot.worker = remote;
    });
    worker.once('exit', () => {
      slot.worker = undefined;
      remote.$close();
    });
  }

  /** From now on the service is draining. */
  drain(): void {
    this.#isClosing = true;
  }

  /** Live while any worker is: the others are not given new connections while they do not take them. */
  async isLive(): Promise<boolean> {
    const answers = this.#ask((worker) => worker.isLive());
    return Promise.any(answers).catch(() => false);
  }

  /** The readiness of the first worker that is ready; if none is, that of one of the others. */
  async readReadiness(): Promise<Readiness> {
    if (this.#isClosing) return { status: 'draining' };
    let notReady: Readiness = { status: 'unavailable' };
    const answers = this.#ask(async (worker) => {
      const readiness = await worker.readReadiness();
      if (isReady(readiness)) return readiness;
      notReady = readiness;
      throw new Error('not ready');
    });
    return Promise.any(answers).catch(() => notReady);
  }

  /** Concurrent scrapes share one round of questions to the workers. */
  readMetrics(): Promise<string> {
    this.#running ??= this.#readMetrics().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #readMetrics(): Promise<string> {
    const answers = await Promise.allSettled(this.#ask((worker) => worker.collectMetrics()));
    const metrics = answers.map((answer, index) =>
      answer.status === 'fulfilled' ? addWorkerLabel(answer.value, toLabel(index)) : [],
    );
    const up = {
      name: 'worker_up',
      help: '1 for a worker whose metrics are in this answer; 0 for one that is starting, stalled or dead',
      type: 'gauge',
      aggregator: SAME_IN_EVERY_WORKER,
      values: answers.map(({ status }, index) => ({
        value: Number(status === 'fulfilled'),
        labels: { worker: toLabel(index) },
      })),
    };
    const own = addWorkerLabel(await this.#own.getMetricsAsJSON(), 'primary');
    return AggregatorRegistry.aggregate([[up], own, ...metrics]).metrics();
  }

  /** The answers of the workers, in their order; rejects for a worker that is not listening. */
  #ask<T>(question: (worker: WorkerFunctions) => Promise<T>): Promise<T>[] {
    return this.#slots.map(async ({ worker }) => {
      if (worker === undefined) throw new Error('not listening');
      return question(worker);
    });
  }
}

/** The primary process, as a worker sees it. */
export interface Primary extends PrimaryFunctions {
  /** Gives it these answers; call it before the worker listens. */
  answerWith(probes: WorkerFunctions): void;
}

export function connectToPrimary(worker: Worker): Primary {
  const answers: Partial<WorkerFunctions> = {};
  const primary = createBirpc<PrimaryFunctions, Partial<WorkerFunctions>>(answers, {
    ...toChannel(worker),
    timeout: PRIMARY_TIMEOUT_MS,
  });
  return {
    answerWith({ collectMetrics, isLive, readReadiness }) {
      Object.assign(answers, { collectMetrics, isLive, readReadiness });
    },
    readMetrics: () =>
      primary.readMetrics().catch((cause: unknown) => {
        throw new ApiError('service_unavailable', { message: 'The primary process does not answer.', cause });
      }),
  };
}

/** A message to a process that has ended is lost: without a callback, Node.js would throw. */
function toChannel(worker: Worker) {
  return {
    post: (message: object) => worker.send(message, () => {}),
    on: (listener: (message: object) => void) => worker.on('message', listener),
  };
}

/** Counted from 1, and kept by a worker that replaces another: the number of series stays bounded. */
const toLabel = (index: number) => String(index + 1);

/**
 * Labels series with their worker instead of summing them: a sum would fall when a worker is replaced, which Prometheus
 * takes for a restart of all. What is the same in every worker stays unlabelled.
 */
function addWorkerLabel(metrics: CollectedMetrics, worker: string): object[] {
  return metrics.map((metric) => {
    if (metric.aggregator === SAME_IN_EVERY_WORKER) return metric;
    const values = metric.values
      // A gauge without a sample is NaN: JSON makes it null, and prom-client would write that as +Inf.
      .filter(({ value }) => value !== null)
      .map((value) => ({ ...value, labels: { ...value.labels, worker } }));
    return { ...metric, aggregator: SAME_IN_EVERY_WORKER, values };
  });
}

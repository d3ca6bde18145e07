import type { FastifyBaseLogger } from 'fastify';

/** When a process counts as overloaded. */
const OVERLOAD_LIMITS = {
  // How late the event loop may run, and how long a request may wait for its turn. Beyond this, many clients have given up,
  // or soon will.
  delayMs: 1_000,
  // How often the event loop is sampled.
  sampleIntervalMs: 250,
};

/** One late sample may be due to a single long task; two in a row are load. */
const LATE_SAMPLES_MIN = 2;
/** Long enough for a queue to empty, and short enough not to leave the service idle afterwards. */
const RETRY_SECONDS = 2;
/** How long the queue counts as overloaded after a request that waited too long: until most clients have tried again. */
const QUEUE_REPORT_MS = RETRY_SECONDS * 1000;

/** With `queue`, only requests that have waited too long for their turn get a 503. */
export const OVERLOAD_REASONS = ['event_loop', 'queue'] as const;

type OverloadReason = (typeof OVERLOAD_REASONS)[number];

export interface OverloadOptions {
  readonly log: FastifyBaseLogger;
  /** Overrides individual defaults */
  readonly overload?: Partial<typeof OVERLOAD_LIMITS> | undefined;
}

export type OverloadMonitor = Readonly<ReturnType<typeof createOverloadMonitor>>;

/**
 * Monitors the event loop. @fastify/under-pressure would reject requests before key and limit are known, reject health
 * checks too, and mistake one long task for load. Here the 503 carries the limit headers.
 *
 * The delay of the event loop is how late a timer fires. The loop counts as overloaded after LATE_SAMPLES_MIN late
 * samples in a row, and recovers with the first one on time. How long requests wait for their turn is up to their
 * callers. A caller with too many at once gets a 503 for each that has waited too long, and other callers are served.
 */
export function createOverloadMonitor({ log, overload }: OverloadOptions) {
  const { delayMs, sampleIntervalMs } = { ...OVERLOAD_LIMITS, ...overload };
  let lateSamples = 0;
  let deniedAt = Number.NEGATIVE_INFINITY;
  let dueAt = performance.now() + sampleIntervalMs;
  let logged: OverloadReason | undefined;
  const isLate = () => lateSamples >= LATE_SAMPLES_MIN;
  const readReason = (): OverloadReason | undefined => {
    if (isLate()) return 'event_loop';
    return performance.now() - deniedAt < QUEUE_REPORT_MS ? 'queue' : undefined;
  };
  const timer = setTimeout(() => {
    const now = performance.now();
    lateSamples = now - dueAt > delayMs ? lateSamples + 1 : 0;
    dueAt = now + sampleIntervalMs;
    timer.refresh();
    const reason = readReason();
    if (reason === logged) return;
    logged = reason;
    if (reason === undefined) log.info('no longer overloaded');
    else log.warn({ reason }, `overloaded: ${reason === 'queue' ? 'some' : 'all'} requests get a 503`);
  }, sampleIntervalMs).unref();
  return {
    /** The part that is overloaded; undefined while there is capacity. */
    get reason() {
      return readReason();
    },
    /**
     * Seconds until a request that would wait too long, or has, may be sent again; undefined while there is capacity.
     *
     * @param queuedMs how long the request has waited for its turn
     */
    check(queuedMs = 0) {
      if (isLate()) return RETRY_SECONDS;
      if (queuedMs <= delayMs) return undefined;
      deniedAt = performance.now();
      return RETRY_SECONDS;
    },
    close: () => clearTimeout(timer),
  };
}

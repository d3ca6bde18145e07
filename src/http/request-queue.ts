import type { FastifyInstance } from 'fastify';

/** Few enough for a tick to take a millisecond or two, and enough for their queries to share statements. */
const MAX_REQUESTS_PER_TICK = 16;

export interface RequestQueue {
  /** For how many milliseconds the first request in the queue has been waiting; 0 when there is none */
  readonly delayMs: number;
}

interface Waiting {
  readonly since: number;
  readonly next: () => void;
}

/**
 * Starts a few requests per tick of the event loop, in the order of their arrival; the others wait. Node.js accepts one
 * new connection per tick: with a hundred requests in each, 200 new connections would wait for over a second.
 */
export function limitRequestsPerTick(app: FastifyInstance): RequestQueue {
  let waiting: Waiting[] = [];
  let started = 0;
  let isScheduled = false;
  const schedule = () => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(run);
  };
  const run = () => {
    isScheduled = false;
    const batch = waiting.slice(0, MAX_REQUESTS_PER_TICK);
    waiting = waiting.slice(MAX_REQUESTS_PER_TICK);
    started = batch.length;
    for (const { next } of batch) next();
    if (started > 0) schedule();
  };
  app.addHook('onRequest', (_request, _reply, next) => {
    schedule();
    if (waiting.length === 0 && started < MAX_REQUESTS_PER_TICK) {
      started += 1;
      next();
    } else {
      waiting.push({ since: performance.now(), next });
    }
  });
  return {
    get delayMs() {
      const [first] = waiting;
      return first === undefined ? 0 : performance.now() - first.since;
    },
  };
}

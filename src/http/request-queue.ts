import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Few enough for a tick to take two or three milliseconds, and enough for their queries to share statements. */
const MAX_PER_TICK = 32;
/** While new connections arrive. Node.js accepts one of them per tick, so the ticks have to be short. */
const MAX_PER_TICK_WHILE_ACCEPTING = 4;
/** So that the others are slow, but never stuck, while preferred requests alone would fill every tick. */
const MIN_OTHERS_PER_TICK = 2;

export interface RequestQueue {
  /** For how many milliseconds the first preferred request has been waiting; 0 when there is none */
  readonly delayMs: number;
}

interface Waiting {
  /** By performance.now() */
  readonly since: number;
  readonly start: () => void;
}

/**
 * Starts a few requests per tick of the event loop; the others wait, preferred ones in front. What a process cannot keep
 * up with waits here, before it has cost much: a flood of requests that are not preferred delays those that are by a
 * tick. And new connections are accepted soon, however busy the others are.
 */
export function limitRequestsPerTick(
  app: FastifyInstance,
  isPreferred: (request: FastifyRequest) => boolean,
): RequestQueue {
  let preferred: Waiting[] = [];
  let others: Waiting[] = [];
  let started = 0;
  let maxPerTick = MAX_PER_TICK;
  let isAccepting = false;
  let isScheduled = false;
  const schedule = () => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(startNext);
  };
  const startNext = () => {
    isScheduled = false;
    maxPerTick = isAccepting ? MAX_PER_TICK_WHILE_ACCEPTING : MAX_PER_TICK;
    isAccepting = false;
    const reserved = Math.min(others.length, MIN_OTHERS_PER_TICK);
    const batch = preferred.slice(0, maxPerTick - reserved);
    const rest = maxPerTick - batch.length;
    preferred = preferred.slice(batch.length);
    batch.push(...others.slice(0, rest));
    others = others.slice(rest);
    started = batch.length;
    for (const { start } of batch) start();
    if (started > 0) schedule();
  };
  app.server.on('connection', () => {
    isAccepting = true;
  });
  app.addHook('onRequest', (request, _reply, next) => {
    schedule();
    if (started < maxPerTick && preferred.length === 0 && others.length === 0) {
      started += 1;
      return next();
    }
    const queue = isPreferred(request) ? preferred : others;
    queue.push({ since: performance.now(), start: next });
  });
  return {
    get delayMs() {
      const [first] = preferred;
      return first === undefined ? 0 : performance.now() - first.since;
    },
  };
}

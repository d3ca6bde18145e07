import type { Socket } from 'node:net';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { PoolUse } from '../database/client.js';
import { ApiError } from '../errors.js';

/** What one client, or all of them, may hold of a process. Durations in milliseconds. */
export interface ConnectionLimits {
  /** From the first byte, or from connecting when none comes, to the end of the headers */
  readonly headersTimeout: number;
  /** From the first byte to the end of the body */
  readonly requestTimeout: number;
  /** How often the two above are looked for; what is late ends so much later */
  readonly connectionsCheckingInterval: number;
  /** How long a connection may be idle between requests */
  readonly keepAliveTimeout: number;
  /** The answer to the last one says `Connection: close` */
  readonly maxRequestsPerSocket: number;
  /** Of one process; further ones are closed at once */
  readonly maxConnections: number;
}

export const connectionLimits: ConnectionLimits = {
  // Headers fit into 16 KiB: the slowest of honest clients sends them in a second or two.
  headersTimeout: 15_000,
  // 64 KiB in 30 s is what the slowest mobile networks reach.
  requestTimeout: 30_000,
  // Walks over all connections; at 5 s that costs nothing that could be measured.
  connectionsCheckingInterval: 5_000,
  // Longer than the 60 s of usual proxies, so that it is they who end a connection: else they would send on a closed one.
  keepAliveTimeout: 72_000,
  // Lets connections move to new nodes and workers; at 10,000 a new connection costs nothing per request.
  maxRequestsPerSocket: 10_000,
  // An idle one takes about 10 KB; refusing is better than running out of descriptors, which hits the database too.
  maxConnections: 10_000,
};

/**
 * Ends a connection with the answer to its last request. Node.js has an option for that, which answers what was
 * pipelined behind by itself, with a 503 that has no body; here such requests get no answer (RFC 9112, section 9.6).
 */
export function limitRequestsPerSocket(app: FastifyInstance, most: number): void {
  const served = new WeakMap<Socket, number>();
  app.addHook('onRequest', (request, reply, next) => {
    const count = (served.get(request.raw.socket) ?? 0) + 1;
    served.set(request.raw.socket, count);
    if (count >= most) reply.header('connection', 'close');
    next();
  });
}

/** When a process has more to do than it can. */
interface OverloadLimits {
  /** How late the event loop may come, in milliseconds */
  readonly delayMs: number;
  /** How many queries may wait for a connection to the database */
  readonly waitingQueries: number;
  /** How often the event loop is looked at, in milliseconds */
  readonly sampleMs: number;
}

const overloadLimits: OverloadLimits = {
  // Every client then waits more than a second before its request is even looked at: most have given up or soon will.
  delayMs: 1_000,
  // Ten connections at 5 ms a query need half a second for them; what stands behind comes near the 1 s that a query waits.
  waitingQueries: 1_000,
  sampleMs: 250,
};

/** One late sample may be a single long task; a second one in succession is load. */
const SAMPLES_TO_BELIEVE = 2;
/** Long enough for a queue to empty, and short enough not to leave the service idle after it. */
const RETRY_SECONDS = 2;

export interface OverloadOptions {
  readonly log: FastifyBaseLogger;
  /** Without one only the event loop is looked at. */
  readonly pool?: PoolUse;
  /** What is given replaces the default. */
  readonly overload?: Partial<OverloadLimits>;
}

export interface LoadWatch {
  /** What is overloaded now */
  readonly reason: 'event_loop' | 'pool' | undefined;
  /** The refusal of a request that would only queue: 503 with Retry-After; undefined while there is room. */
  findFault(): ApiError | undefined;
  close(): void;
}

/**
 * Watches the event loop and the queue for the database, in place of @fastify/under-pressure: that refuses before the
 * key and the limit are known, whatever watches the service too, takes one long task for load, and would learn of the
 * queue at intervals only. Here the queue counts as it is when a request comes, and refusals carry the limit.
 *
 * Measured as how late a timer comes, an event loop counts as overloaded when it is over its limit twice in succession,
 * and as free again with the first sample under it.
 */
export function watchLoad({ log, pool, overload }: OverloadOptions): LoadWatch {
  const { delayMs, waitingQueries, sampleMs } = { ...overloadLimits, ...overload };
  let lateSamples = 0;
  let dueAt = performance.now() + sampleMs;
  let logged: LoadWatch['reason'];
  const readReason = (): LoadWatch['reason'] => {
    if (lateSamples >= SAMPLES_TO_BELIEVE) return 'event_loop';
    return pool !== undefined && pool.waitingCount > waitingQueries ? 'pool' : undefined;
  };
  const timer = setTimeout(() => {
    const now = performance.now();
    lateSamples = now - dueAt > delayMs ? lateSamples + 1 : 0;
    dueAt = now + sampleMs;
    timer.refresh();
    const reason = readReason();
    if (reason === logged) return;
    logged = reason;
    if (reason === undefined) log.info('no longer overloaded');
    else log.warn({ reason }, 'overloaded: requests are refused until it is over');
  }, sampleMs).unref();
  return {
    get reason() {
      return readReason();
    },
    findFault: () => (readReason() === undefined ? undefined : overloaded()),
    close: () => clearTimeout(timer),
  };
}

function overloaded(): ApiError {
  return new ApiError('service_unavailable', {
    message: `The service is overloaded. Try again in ${RETRY_SECONDS} s.`,
    headers: { 'retry-after': String(RETRY_SECONDS) },
  });
}

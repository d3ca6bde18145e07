import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http';

/** Few enough for a tick to take two or three milliseconds, and enough for their queries to share statements. */
const MAX_PER_TICK = 32;
/** While new connections arrive. Node.js accepts one of them per tick, so the ticks have to be short. */
const MAX_PER_TICK_WHILE_ACCEPTING = 4;
/** So that the others are slow, but never stuck, while preferred requests alone would fill every tick. */
const MIN_OTHERS_PER_TICK = 2;

declare module 'node:http' {
  interface IncomingMessage {
    /** When it arrived, before it waited in the queue, by performance.now() */
    receivedAt?: number;
  }
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
 *
 * Requests wait in front of Fastify. What it allocates for a waiting request would survive several collections of the
 * young generation, which costs 10 to 25 % of the requests per second at 512 connections.
 */
export class RequestQueue {
  readonly #isPreferred: (request: IncomingMessage) => boolean;
  #preferred: Waiting[] = [];
  #others: Waiting[] = [];
  #started = 0;
  #maxPerTick = MAX_PER_TICK;
  #isAccepting = false;
  #isScheduled = false;

  constructor(isPreferred: (request: IncomingMessage) => boolean) {
    this.#isPreferred = isPreferred;
  }

  /** For how many milliseconds the first preferred request has been waiting; 0 when there is none */
  get delayMs(): number {
    const [first] = this.#preferred;
    return first === undefined ? 0 : performance.now() - first.since;
  }

  /** A server that hands its requests to the handler when it is their turn. */
  createServer(options: ServerOptions, handle: RequestListener): Server {
    const server = createServer(options, (request, response) => {
      const since = performance.now();
      request.receivedAt = since;
      this.#schedule();
      if (this.#started < this.#maxPerTick && this.#preferred.length === 0 && this.#others.length === 0) {
        this.#started += 1;
        return handle(request, response);
      }
      const queue = this.#isPreferred(request) ? this.#preferred : this.#others;
      // A promise keeps the asynchronous context, which with tracing has the span of the request. AsyncResource would
      // double what a denial costs.
      void new Promise<void>((start) => queue.push({ since, start })).then(() => handle(request, response));
    });
    server.on('connection', (socket) => {
      this.#isAccepting = true;
      // For the log, if the client leaves while its request waits: Node.js remembers an address that was read before.
      void socket.remoteAddress;
    });
    return server;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#startNext());
  }

  #startNext(): void {
    this.#isScheduled = false;
    this.#maxPerTick = this.#isAccepting ? MAX_PER_TICK_WHILE_ACCEPTING : MAX_PER_TICK;
    this.#isAccepting = false;
    const reserved = Math.min(this.#others.length, MIN_OTHERS_PER_TICK);
    const batch = this.#preferred.slice(0, this.#maxPerTick - reserved);
    const rest = this.#maxPerTick - batch.length;
    this.#preferred = this.#preferred.slice(batch.length);
    batch.push(...this.#others.slice(0, rest));
    this.#others = this.#others.slice(rest);
    this.#started = batch.length;
    for (const { start } of batch) start();
    if (this.#started > 0) this.#schedule();
  }
}

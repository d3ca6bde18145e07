import { createServer, type IncomingMessage, type RequestListener, type ServerOptions } from 'node:http';
import { UnansweredRequests } from './unanswered.js';

/** How many requests start in one tick: few enough for it to take some milliseconds, enough for their queries to share statements. */
const MAX_PER_TICK = 32;
/**
 * How many of these one caller may have while there are several callers: each request takes three ticks (limits, database,
 * response).
 */
const MAX_PER_CALLER = 6;
/** There are several callers for this long after a request whose caller was not that of the request before. */
const SEVERAL_CALLERS_MS = 1_000;
/** How many start while new connections arrive: Node.js accepts one connection per tick, so ticks have to be short then. */
const MAX_PER_TICK_WHILE_ACCEPTING = 4;
/** If fewer preferred requests start in a tick, no tick is scheduled just to count them: they count towards the next. */
const COUNTED_FROM = 4;
/** How many other requests start in a tick that preferred requests could fill: they are slow then, but never stuck. */
const MIN_OTHERS_PER_TICK = 2;

/** The sender of a request, by its headers. Whether the request may be served is not known yet. */
export interface Caller {
  /** The id of a key or an address */
  readonly id: string;
  readonly isPreferred: boolean;
}

interface Waiting {
  readonly request: IncomingMessage;
  readonly start: () => void;
}

/**
 * Starts a few requests per tick of the event loop; the others wait here, in front of Fastify, before they have cost much.
 *
 * This is for fairness, not for speed. Without it, 512 connections of one caller would get 1.07 to 1.27 times the requests
 * per second, but a caller beside 1,000 busy connections of another would wait 3.0 s at p99 instead of 56 ms.
 *
 * ## Preferred requests first
 * A preferred request starts at once if the tick has room for it and no earlier request of its caller is waiting, however
 * many other requests wait. The others start only after the tick has read all its input, which often shows that their client
 * has already left.
 *
 * ## Callers in turns
 * Before a caller's request starts, at most one request of each other caller does, however many connections those have and
 * however many requests they have sent. No caller can make the ticks long for the others.
 *
 * ## New connections soon
 * New connections are accepted soon, however busy the existing ones are.
 *
 * ## A bound for what waits
 * See UnansweredRequests.
 */
export class RequestQueue {
  readonly #identify: (request: IncomingMessage) => Caller;
  readonly #unanswered = new UnansweredRequests();
  readonly #preferred = new Turns();
  readonly #others = new Turns();
  #latestCaller = '';
  #callerChangedAt = Number.NEGATIVE_INFINITY;
  #startedPreferred = 0;
  #maxPerTick = MAX_PER_TICK;
  #isScheduled = false;

  constructor(identify: (request: IncomingMessage) => Caller) {
    this.#identify = identify;
  }

  /** Creates a server that passes each request to the handler when its turn comes. */
  createServer(options: ServerOptions, handle: RequestListener) {
    const server = createServer(options, (request, response) => {
      const { id, isPreferred } = this.#identify(request);
      const waiting = this.#preferred.size + this.#others.size;
      if (!this.#unanswered.add(request, response, isPreferred, waiting)) return;
      request.receivedAt = performance.now();
      if (this.#latestCaller && id !== this.#latestCaller) this.#callerChangedAt = request.receivedAt;
      this.#latestCaller = id;
      const turns = isPreferred ? this.#preferred : this.#others;
      if (isPreferred && this.#startedPreferred < this.#maxPerTick && turns.takeTurn(id)) {
        this.#startedPreferred += 1;
        if (this.#startedPreferred >= COUNTED_FROM) this.#schedule();
        return handle(request, response);
      }
      this.#schedule();
      // A promise keeps the asynchronous context, which with tracing has the span of the request. AsyncResource would
      // double what a denial costs.
      void new Promise<void>((start) => turns.push(id, { request, start })).then(() =>
        handle(request, response),
      );
    });
    server.on('connection', (socket) => {
      this.#maxPerTick = MAX_PER_TICK_WHILE_ACCEPTING;
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
    const hasSeveralCallers = performance.now() - this.#callerChangedAt < SEVERAL_CALLERS_MS;
    for (const turns of [this.#preferred, this.#others])
      turns.beginTick(hasSeveralCallers ? MAX_PER_CALLER : MAX_PER_TICK);
    const reserved = Math.min(this.#others.size, MIN_OTHERS_PER_TICK);
    this.#startedPreferred = this.#start(this.#preferred, this.#maxPerTick - reserved);
    this.#start(this.#others, this.#maxPerTick - this.#startedPreferred);
    this.#maxPerTick = MAX_PER_TICK;
    const isCounted = this.#startedPreferred >= COUNTED_FROM;
    if (isCounted || this.#preferred.size + this.#others.size > 0) this.#schedule();
  }

  /** Starts requests until there are no more for this tick. Returns how many. */
  #start(turns: Turns, max: number): number {
    for (let started = 0; started < max; started += 1) {
      const next = turns.shift();
      if (next === undefined) return started;
      next.request.queuedMs = performance.now() - (next.request.receivedAt ?? 0);
      next.start();
    }
    return max;
  }
}

/** How many callers are remembered before callers without waiting requests are forgotten */
const MAX_CALLERS = 10_000;

/**
 * The waiting requests of several callers, taken in rounds: one request of each caller, then the next of each.
 *
 * Callers are stored apart from their requests. When many keys come and go, V8 replaces the table of a Map, and old tables
 * keep their successors alive; they would keep the requests alive, too.
 */
class Turns {
  /** How many requests of all callers wait */
  size = 0;
  readonly #rounds: Waiting[][] = [];
  /** The number of the first round, how much of it has been taken, and the round that this tick does not reach */
  #first = 0;
  #taken = 0;
  #end = 0;
  /** The latest round that each caller has a request in */
  #latest = new Map<string, number>();

  beginTick(maxPerCaller: number): void {
    if (this.size === 0) this.#first = this.#end;
    this.#end = this.#first + maxPerCaller;
    if (this.#latest.size < MAX_CALLERS) return;
    this.#latest = new Map(Array.from(this.#latest).filter(([, round]) => round >= this.#first));
  }

  push(caller: string, waiting: Waiting): void {
    const round = this.#nextRound(caller);
    this.#latest.set(caller, round);
    const others = this.#rounds[round - this.#first];
    if (others === undefined) this.#rounds.push([waiting]);
    else others.push(waiting);
    this.size += 1;
  }

  /** Takes a turn of this tick for a caller. Returns false if the caller has used all its turns, or has requests that wait. */
  takeTurn(caller: string): boolean {
    const round = this.#nextRound(caller);
    if (round >= this.#end || (this.size > 0 && round > this.#first)) return false;
    this.#latest.set(caller, round);
    return true;
  }

  /** The next request of this tick. One whose connection was closed takes no turn. */
  shift(): Waiting | undefined {
    for (;;) {
      const [round] = this.#rounds;
      if (round === undefined || this.#first >= this.#end) return undefined;
      const waiting = round[this.#taken] as Waiting;
      const isCancelled = waiting.request.socket.debt?.isCancelled;
      if (isCancelled) this.#end += 1;
      this.#taken += 1;
      this.size -= 1;
      if (this.#taken === round.length) {
        this.#rounds.shift();
        this.#first += 1;
        this.#taken = 0;
      }
      if (!isCancelled) return waiting;
    }
  }

  #nextRound(caller: string): number {
    return Math.max((this.#latest.get(caller) ?? -1) + 1, this.#first);
  }
}

import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http';
import type { Socket } from 'node:net';
import { UnansweredRequests } from './unanswered.js';

/** Of either kind: few enough for a tick to take a few milliseconds, and enough for their queries to share statements. */
const MAX_PER_TICK = 32;
/** While new connections arrive. Node.js accepts one of them per tick, so the ticks have to be short. */
const MAX_PER_TICK_WHILE_ACCEPTING = 4;
/** So that the others are slow, but never stuck, while preferred requests alone would fill every tick. */
const MIN_OTHERS_PER_TICK = 2;

declare module 'node:http' {
  interface IncomingMessage {
    /** When it arrived, before it waited in the queue, by performance.now() */
    receivedAt?: number;
    /** How long it waited in the queue, in milliseconds; undefined if it started at once */
    queuedMs?: number;
  }
}

/** Who sent a request, as far as its head says: whether it may be served is not known yet. */
export interface Caller {
  /** Of a key or an address */
  readonly id: string;
  readonly isPreferred: boolean;
}

interface Waiting {
  readonly request: IncomingMessage;
  readonly start: () => void;
}

/**
 * Starts a few requests per tick of the event loop; the others wait here, before they have cost much.
 *
 * ## Preferred requests first
 * A preferred request starts at once unless others like it wait, however many of the rest do. Those wait for what else
 * the tick reads, which often ends their connection.
 *
 * ## Callers in turns
 * A caller waits for one request of each other caller, however many connections and requests those have.
 *
 * ## New connections soon
 * They are accepted however busy the others are.
 *
 * ## A bound for what waits
 * See UnansweredRequests.
 *
 * Requests wait in front of Fastify. What it allocates for a waiting request would survive several collections of the
 * young generation, which costs 10 to 25 % of the requests per second at 512 connections.
 */
export class RequestQueue {
  readonly #identify: (request: IncomingMessage) => Caller;
  readonly #unanswered = new UnansweredRequests();
  readonly #preferred = new Turns<Waiting>();
  readonly #others = new Turns<Waiting>();
  #startedPreferred = 0;
  #maxPerTick = MAX_PER_TICK;
  #isAccepting = false;
  #isScheduled = false;

  constructor(identify: (request: IncomingMessage) => Caller) {
    this.#identify = identify;
  }

  /** A server that hands its requests to the handler when it is their turn. */
  createServer(options: ServerOptions, handle: RequestListener): Server {
    const server = createServer(options, (request, response) => {
      const { id, isPreferred } = this.#identify(request);
      const waiting = this.#preferred.size + this.#others.size;
      if (!this.#unanswered.add(request, response, isPreferred, waiting)) return;
      request.receivedAt = performance.now();
      this.#schedule();
      const turns = isPreferred ? this.#preferred : this.#others;
      if (isPreferred && turns.size === 0 && this.#startedPreferred < this.#maxPerTick) {
        this.#startedPreferred += 1;
        return handle(request, response);
      }
      // A promise keeps the asynchronous context, which with tracing has the span of the request. AsyncResource would
      // double what a denial costs.
      void new Promise<void>((start) => turns.push(id, { request, start })).then(() =>
        handle(request, response),
      );
    });
    server.on('connection', (socket: Socket) => {
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
    const reserved = Math.min(this.#others.size, MIN_OTHERS_PER_TICK);
    this.#startedPreferred = this.#start(this.#preferred, this.#maxPerTick - reserved);
    const started = this.#start(this.#others, this.#maxPerTick - this.#startedPreferred);
    if (this.#startedPreferred + started > 0) this.#schedule();
  }

  /** Returns how many requests were started. */
  #start(turns: Turns<Waiting>, count: number): number {
    let started = 0;
    while (started < count) {
      const next = turns.shift();
      if (next === undefined) break;
      const { request, start } = next;
      if (request.socket.debt?.isCancelled) continue;
      request.queuedMs = performance.now() - (request.receivedAt ?? 0);
      start();
      started += 1;
    }
    return started;
  }
}

/** How many callers are remembered before those that wait no more are forgotten. */
const MAX_CALLERS = 10_000;

/**
 * What several callers wait for, taken in rounds: one item of each, then the next of each.
 *
 * Callers are remembered without what they wait for. The tables that V8 replaces in a Map with much coming and going
 * keep those that follow them alive, and would keep the requests alive with them.
 */
class Turns<T> {
  /** How much waits, of all callers */
  size = 0;
  readonly #rounds: T[][] = [];
  /** The number of the first round, and how much of it has been taken */
  #first = 0;
  #taken = 0;
  /** The latest round that each caller has an item in */
  #latest = new Map<string, number>();

  push(caller: string, item: T): void {
    const next = (this.#latest.get(caller) ?? -1) + 1;
    const round = Math.max(next, this.#first);
    this.#latest.set(caller, round);
    const items = this.#rounds[round - this.#first];
    if (items === undefined) this.#rounds.push([item]);
    else items.push(item);
    this.size += 1;
  }

  shift(): T | undefined {
    const [round] = this.#rounds;
    if (round === undefined) return undefined;
    const item = round[this.#taken];
    this.#taken += 1;
    this.size -= 1;
    if (this.#taken === round.length) this.#endRound();
    return item;
  }

  #endRound(): void {
    this.#rounds.shift();
    this.#first += 1;
    this.#taken = 0;
    if (this.size > 0 && this.#latest.size < MAX_CALLERS) return;
    this.#latest = new Map(Array.from(this.#latest).filter(([, round]) => round >= this.#first));
  }
}

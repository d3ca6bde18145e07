import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * How many requests of one connection may be unanswered: not even benchmarks pipeline more. Whatever a connection sends at
 * once is parsed within one tick, which delays everybody by about 20 µs per request, whether it is answered or withdrawn.
 */
const MAX_PER_CONNECTION = 16;
/**
 * Once this many requests of all connections together are unanswered, none may be pipelined any more. A request takes 10
 * to 20 KB with its response.
 */
const MAX_UNPREFERRED = 2_000;
/** The bound for preferred requests. It is higher, so that other requests cannot keep them from being pipelined. */
const MAX_WITH_PREFERRED = 2 * MAX_UNPREFERRED;

/** The responses that the service owes the client of a connection. */
interface Debt {
  /** The responses that have not been sent, in the order of their requests, in which they also close */
  readonly owed: ServerResponse[];
  /** The response to the last request, until request and response are over */
  last: ServerResponse | undefined;
  /** Whether the connection was closed because of one request too many. Its waiting requests are dropped. */
  isCancelled: boolean;
  readonly settle: () => void;
}

declare module 'node:net' {
  interface Socket {
    /** Undefined before its first request */
    debt?: Debt;
  }
}

/**
 * Bounds the requests that wait for their responses, wherever they wait: clients may send any number without waiting for,
 * or reading, a response. Node.js stops reading from a connection only once responses pile up on it. It then still
 * handles all that it has read, and 64 KB can hold 1,450 requests.
 *
 * A request beyond a bound closes its connection. Clients that wait for a response before they send the next request,
 * which are all that anybody knows of, never exceed a bound.
 */
export class UnansweredRequests {
  #total = 0;

  /**
   * Counts a request until it is answered or its connection ends. Returns whether it may be served; if not, its
   * connection is closed.
   *
   * @param waiting how many requests wait for their turn, including those whose clients have left
   */
  add({ socket }: IncomingMessage, response: ServerResponse, isPreferred: boolean, waiting: number): boolean {
    socket.debt ??= this.#open(socket);
    const { debt } = socket;
    // Its connection was closed, or will be, after the response to an earlier request (RFC 9112, section 9.6).
    if (socket.destroyed || debt.last?.shouldKeepAlive === false) {
      stopParsing(socket);
      return false;
    }
    const max = isPreferred ? MAX_WITH_PREFERRED : MAX_UNPREFERRED;
    const isTooMany = debt.owed.length >= MAX_PER_CONNECTION || Math.max(this.#total, waiting) >= max;
    if (debt.owed.length > 0 && isTooMany) {
      debt.isCancelled = true;
      stopParsing(socket);
      socket.destroy();
      return false;
    }
    this.#total += 1;
    debt.owed.push(response);
    debt.last = response;
    response.on('close', debt.settle);
    return true;
  }

  #open(socket: Socket): Debt {
    const debt: Debt = {
      owed: [],
      last: undefined,
      isCancelled: false,
      settle: () => {
        // Not every response closes then. The rest is written off at once, below.
        if (socket.destroyed) return;
        this.#total -= 1;
        debt.owed.shift();
        if (debt.owed.length === 0 && debt.last?.req.complete) debt.last = undefined;
      },
    };
    socket.once('close', () => {
      this.#total -= debt.owed.length;
      // Node.js 20 closes only the first response, and later versions close all. The others would never release what they
      // hold, such as an open file.
      setImmediate(() => {
        for (const response of debt.owed) {
          if (!response.closed && !response.writableFinished) response.emit('close');
        }
      });
    });
    return debt;
  }
}

/**
 * Makes Node.js skip the rest of what it has read. No public function does: after `destroy`, Node.js still creates a
 * request and a response for each of up to 1,450 more. Its parser takes a 2 for the start of another protocol, and stops.
 */
function stopParsing(socket: Socket & { parser?: { onIncoming: () => number } | null }): void {
  if (socket.parser) socket.parser.onIncoming = () => 2;
}

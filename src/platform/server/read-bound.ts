import type { Server } from 'node:http';
import { Socket } from 'node:net';

/** Of what a connection sends without a further request, so much is read at once. The largest body that is served is smaller. */
const FREE_BYTES = 128 * 1024;
/** So much is read in all before the connection is closed. */
const MAX_BYTES = 1024 * 1024;
/**
 * How fast what is not free is read, for all connections together. This takes a tenth of a core; without a bound, eight
 * clients could occupy a core.
 */
const BYTES_PER_MS = 32_000;
/** How long a client that sends more has to read its response before its connection is reset. */
const LINGER_MS = 1_000;

declare module 'node:net' {
  interface Socket {
    /** Node.js calls it whenever it has read something, to start the timeout of the connection anew. */
    _unrefTimer(): void;
    readBound?: ReadBound;
  }
}

/**
 * Bounds and slows down what a connection sends without a further request, by the bytes of the connection: the body of a
 * refused request, the framing of one that is served, what the parser has rejected, line breaks between requests.
 */
export function boundReads(server: Server): void {
  /** When the next bytes may be read, by performance.now() */
  let nextAt = 0;
  /** @returns how long to wait after so many bytes, in milliseconds */
  const delay = (bytes: number) => {
    const now = performance.now();
    nextAt = Math.max(nextAt, now) + bytes / BYTES_PER_MS;
    return nextAt - now;
  };
  server.on('connection', (socket) => {
    const bound = new ReadBound(socket, delay);
    socket.readBound = bound;
    // Nothing public tells of all that is read. A listener for data would cost each request 2 µs of CPU.
    socket._unrefTimer = function () {
      Socket.prototype._unrefTimer.call(this);
      bound.check();
    };
  });
  server.on('request', ({ socket }) => socket.readBound?.allow(MAX_BYTES));
}

/** How much may be read from a connection, and how fast. */
class ReadBound {
  readonly #socket: Socket;
  readonly #delay: (bytes: number) => number;
  #readBytes = 0;
  #freeUntil = FREE_BYTES;
  #until = MAX_BYTES;

  constructor(socket: Socket, delay: (bytes: number) => number) {
    this.#socket = socket;
    this.#delay = delay;
  }

  /** Lets so many bytes follow what has been read. */
  allow(bytes: number): void {
    const { bytesRead } = this.#socket;
    this.#freeUntil = bytesRead + FREE_BYTES;
    this.#until = bytesRead + bytes;
  }

  /** Pauses the connection after what is not free, and ends it after too much. */
  check(): void {
    const socket = this.#socket;
    const bytes = socket.bytesRead - this.#readBytes;
    this.#readBytes += bytes;
    if (bytes === 0 || this.#readBytes <= this.#freeUntil || socket.destroyed) return;
    socket.pause();
    if (this.#readBytes <= this.#until) {
      setTimeout(() => socket.resume(), this.#delay(bytes)).unref();
    } else {
      socket.end();
      setTimeout(() => socket.destroy(), LINGER_MS).unref();
    }
  }
}

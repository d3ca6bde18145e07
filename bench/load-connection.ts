import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { RecordableHistogram } from 'node:perf_hooks';

export interface PreparedRequest {
  readonly bytes: Buffer;
  /** Where a number of its own is written before the request is sent; below 0: nowhere */
  readonly uniqueAt: number;
  /** Of the right response, and a space */
  readonly status: Buffer;
  /** Texts in the body of the right response */
  readonly expected: readonly Buffer[];
}

export interface ConnectionOptions {
  readonly port: number;
  /** From one request to the next, if the response has come by then */
  readonly everyMs: number;
  readonly takeRequest: () => PreparedRequest;
  readonly latenciesUs: RecordableHistogram;
}

/** All connections read into the same memory: a response is looked at before the next one is read. */
const READ_BUFFER = Buffer.allocUnsafe(256 * 1024);
const HEAD_END = Buffer.from('\r\n\r\n');
const CONNECTION_CLOSE = Buffer.from('\r\nconnection: close\r\n');
const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n');
const STATUS_START = 'HTTP/1.1 '.length;
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;

/** Waits for each response before it sends the next request. */
export class LoadConnection {
  readonly #options: ConnectionOptions;
  #socket: Socket;
  #request: PreparedRequest | undefined;
  #sentAt = 0;
  #countsFrom = 0;
  #endsAt = 0;
  /** The beginning of a response that did not arrive in one piece */
  #partial: Buffer | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#socket = this.#connect();
  }

  #connect(): Socket {
    const callback = (length: number, buffer: Uint8Array) => {
      this.#read(Buffer.from(buffer.buffer, buffer.byteOffset, length));
      return true;
    };
    return connect({
      port: this.#options.port,
      host: '127.0.0.1',
      noDelay: true,
      onread: { buffer: READ_BUFFER, callback },
    });
  }

  async open(): Promise<void> {
    await once(this.#socket, 'connect');
  }

  /**
   * Sends one request after the other until `endsAt`, and counts the responses that arrive from `countsFrom` on.
   * Rejects at the first wrong response, and when the server closes the connection without having announced it.
   */
  sendBetween(countsFrom: number, endsAt: number): Promise<void> {
    this.#countsFrom = countsFrom;
    this.#endsAt = endsAt;
    return new Promise((resolve, reject) => {
      const watch = (socket: Socket) =>
        socket.on('error', reject).on('close', () => {
          if (performance.now() >= endsAt) resolve();
          else if (this.#request === undefined) watch(this.#reopen());
          else reject(new Error('The server closed a connection'));
        });
      watch(this.#socket);
      setTimeout(() => this.#send(), Math.random() * this.#options.everyMs);
    });
  }

  /** After the response that announced the end of the connection: a server may limit its requests. */
  #reopen(): Socket {
    this.#socket = this.#connect();
    return this.#socket.on('connect', () => this.#send());
  }

  #send(): void {
    this.#request = this.#options.takeRequest();
    this.#sentAt = performance.now();
    this.#socket.write(this.#request.bytes);
  }

  #read(chunk: Buffer): void {
    const received = this.#partial === undefined ? chunk : Buffer.concat([this.#partial, chunk]);
    const bodyStart = findCompleteBody(received);
    if (bodyStart === undefined) {
      this.#partial = Buffer.from(received);
      return;
    }
    this.#partial = undefined;
    const now = performance.now();
    if (now >= this.#countsFrom && now < this.#endsAt) {
      this.#options.latenciesUs.record(Math.ceil((now - this.#sentAt) * 1000));
    }
    if (!this.#isExpected(received, bodyStart)) {
      this.#socket.destroy(
        new Error(`Wrong response to ${this.#request?.bytes}: ${received.subarray(0, 2_000)}`),
      );
    } else if (now >= this.#endsAt) this.#socket.end();
    else if (isLast(received, bodyStart)) {
      this.#request = undefined;
      this.#socket.end();
    } else this.#sendNext(now);
  }

  #sendNext(now: number): void {
    const waitMs = this.#sentAt + this.#options.everyMs - now;
    if (waitMs > 0) setTimeout(() => this.#send(), waitMs);
    else this.#send();
  }

  #isExpected(response: Buffer, bodyStart: number): boolean {
    const { status, expected } = this.#request as PreparedRequest;
    if (status.compare(response, STATUS_START, STATUS_START + status.length) !== 0) return false;
    return expected.every((text) => response.indexOf(text, bodyStart) >= 0);
  }
}

function isLast(response: Buffer, bodyStart: number): boolean {
  const end = response.indexOf(CONNECTION_CLOSE);
  return end >= 0 && end < bodyStart;
}

/** Returns where the body starts, or undefined for a response that is not complete. */
function findCompleteBody(response: Buffer): number | undefined {
  const headEnd = response.indexOf(HEAD_END);
  if (headEnd < 0) return undefined;
  const bodyStart = headEnd + HEAD_END.length;
  const length = CONTENT_LENGTH.exec(response.toString('latin1', 0, headEnd))?.[1];
  const isComplete =
    length === undefined
      ? response.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)
      : response.length >= bodyStart + Number(length);
  return isComplete ? bodyStart : undefined;
}

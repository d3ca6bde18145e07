import { connect } from 'node:net';
import { type Case, type CaseId, cases, type Keys, PET_COUNT } from './cases.js';

/*
 * A process that sends requests of one case on several connections, each of which waits for the response before it
 * sends again, and checks every response. Written by hand because a general load generator on Node.js needs as much CPU
 * as the servers measured here, and those that need little do not check responses.
 */

export interface LoadOrder {
  readonly caseId: CaseId;
  readonly port: number;
  readonly keys: Keys;
  readonly connections: number;
  readonly seconds: number;
}

export interface LoadReport {
  readonly requests: number;
  readonly seconds: number;
  /** Latencies in milliseconds */
  readonly p50: number;
  readonly p99: number;
}

export interface LoadFailure {
  readonly error: string;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n');

process.on('message', async (order: LoadOrder) => {
  process.send?.(await run(order).catch((error: Error): LoadFailure => ({ error: error.message })));
});
process.on('disconnect', () => process.exit());

async function run({ caseId, port, keys, connections, seconds }: LoadOrder): Promise<LoadReport> {
  const requestCase: Case = cases[caseId];
  const key = keys[requestCase.key];
  const latencies: number[] = [];
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1000;
  await Promise.all(
    Array.from({ length: connections }, () => runConnection(requestCase, port, key, endsAt, latencies)),
  );
  const sorted = Float64Array.from(latencies).sort();
  const percentile = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
  return {
    requests: sorted.length,
    seconds: (performance.now() - startedAt) / 1000,
    p50: percentile(0.5),
    p99: percentile(0.99),
  };
}

/** Sends until the time is up, and adds every latency. Rejects at the first wrong response. */
function runConnection(
  requestCase: Case,
  port: number,
  key: string,
  endsAt: number,
  latencies: number[],
): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let n = 0;
  let sentAt = 0;
  let received: Buffer | undefined;
  const send = () => {
    n = 1 + Math.floor(Math.random() * (PET_COUNT - 400));
    sentAt = performance.now();
    socket.write(toRequest(requestCase, n, key));
  };
  socket.on('connect', send);
  socket.on('data', (chunk: Buffer) => {
    received = received === undefined ? chunk : Buffer.concat([received, chunk]);
    if (!isComplete(received)) return;
    const respondedAt = performance.now();
    latencies.push(respondedAt - sentAt);
    const error = checkResponse(requestCase, n, received);
    received = undefined;
    if (error !== undefined) socket.destroy(error);
    else if (respondedAt < endsAt) send();
    else socket.end();
  });
  return new Promise((resolve, reject) => socket.on('error', reject).on('close', () => resolve()));
}

function toRequest({ method, path, body }: Case, n: number, key: string): string {
  const head = `${method} ${path(n)} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n`;
  if (body === undefined) return `${head}\r\n`;
  const text = body(n);
  return `${head}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
}

function isComplete(response: Buffer): boolean {
  const headEnd = response.indexOf(HEAD_END);
  if (headEnd < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(response.toString('latin1', 0, headEnd))?.[1];
  if (length !== undefined) return response.length >= headEnd + HEAD_END.length + Number(length);
  return response.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
}

function checkResponse({ name, status, expected }: Case, n: number, response: Buffer): Error | undefined {
  const isRight =
    response.toString('latin1', 9, 12) === String(status) &&
    expected(n).every((text) => response.includes(text, 12, 'latin1'));
  return isRight ? undefined : new Error(`${name}: wrong response for ${n}: ${response.subarray(0, 2_000)}`);
}

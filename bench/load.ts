import { connect } from 'node:net';
import { type Case, type CaseName, cases, type Keys, PETS } from './cases.js';

/*
 * A process that sends one case to a server, over and over, on connections that each wait for their answer before they
 * send again. Its own: a general load generator in Node.js takes as much CPU as the servers measured here, and those
 * that take little check no answers.
 */

export interface LoadOrder {
  readonly name: CaseName;
  readonly port: number;
  readonly keys: Keys;
  readonly connections: number;
  readonly seconds: number;
}

export interface LoadReport {
  readonly requests: number;
  readonly seconds: number;
  /** Of one answer, in milliseconds */
  readonly p50: number;
  readonly p99: number;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const CHUNKS_END = Buffer.from('\r\n0\r\n\r\n');

process.on('message', async (order: LoadOrder) => {
  process.send?.(await run(order).catch((error: Error) => ({ fault: error.message })));
});
process.on('disconnect', () => process.exit());

async function run({ name, port, keys, connections, seconds }: LoadOrder): Promise<LoadReport> {
  const wanted: Case = cases[name];
  const latencies: number[] = [];
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1000;
  await Promise.all(
    Array.from({ length: connections }, () => drive(wanted, port, keys[wanted.key], endsAt, latencies)),
  );
  const sorted = Float64Array.from(latencies).sort();
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
  return {
    requests: sorted.length,
    seconds: (performance.now() - startedAt) / 1000,
    p50: at(0.5),
    p99: at(0.99),
  };
}

/** Sends on one connection until the time is over; rejects at the first answer that is not right. */
function drive(wanted: Case, port: number, key: string, endsAt: number, latencies: number[]): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let n = 0;
  let sentAt = 0;
  let received: Buffer | undefined;
  const send = () => {
    n = 1 + Math.floor(Math.random() * (PETS - 400));
    sentAt = performance.now();
    socket.write(toRequest(wanted, n, key));
  };
  socket.on('connect', send);
  socket.on('data', (chunk: Buffer) => {
    received = received === undefined ? chunk : Buffer.concat([received, chunk]);
    if (!isWhole(received)) return;
    const answeredAt = performance.now();
    latencies.push(answeredAt - sentAt);
    const fault = findFault(wanted, n, received);
    received = undefined;
    if (fault !== undefined) socket.destroy(new Error(fault));
    else if (answeredAt < endsAt) send();
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

function isWhole(answer: Buffer): boolean {
  const headEnd = answer.indexOf(HEAD_END);
  if (headEnd < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(answer.toString('latin1', 0, headEnd))?.[1];
  if (length !== undefined) return answer.length >= headEnd + HEAD_END.length + Number(length);
  return answer.subarray(-CHUNKS_END.length).equals(CHUNKS_END);
}

function findFault({ name, status, expect }: Case, n: number, answer: Buffer): string | undefined {
  const isRight =
    answer.toString('latin1', 9, 12) === String(status) &&
    expect(n).every((text) => answer.includes(text, 12, 'latin1'));
  return isRight ? undefined : `${name}: not the right answer for ${n}: ${answer.subarray(0, 2_000)}`;
}

import { createHistogram } from 'node:perf_hooks';
import { type Case, PET_COUNT, STATUSES, UNIQUE } from './case.js';
import { type CaseId, cases } from './cases.js';
import { LoadConnection, type PreparedRequest } from './load-connection.js';

/*
 * A process that sends requests of one case on several connections, each of which waits for the response before it
 * sends again, and checks every response. Requests are prepared before the clock starts, and nothing that a request
 * needs while it runs is garbage afterwards: what this process computes between two responses is part of the latency of
 * the second.
 */

export interface LoadOrder {
  /** Every request is of the next one. */
  readonly caseIds: readonly CaseId[];
  /** Of one server or several, which share the connections */
  readonly ports: readonly number[];
  /** Every request takes the next one. */
  readonly keys: readonly string[];
  readonly connections: number;
  readonly seconds: number;
  /** Of all connections together. Left out: as many as possible */
  readonly requestsPerSecond?: number;
}

export interface LoadReport {
  /** Those that the figures come from */
  readonly requests: number;
  /** All, with those before and after the time that counts */
  readonly sent: number;
  /** CPU time of this process, in microseconds per request */
  readonly loadCpu: number;
  /** Percentiles of the latency, in milliseconds */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}

export type LoadFailure = { readonly error: string };

/** At least: as many with each key */
const PREPARED_REQUESTS = 4_096;
/** Not counted: the first requests arrive all at once, and find a pool whose connections have been idle for long. */
const RAMP_UP_MS = 500;

process.on('message', async (order: LoadOrder) => {
  process.send?.(await run(order).catch((error: Error): LoadFailure => ({ error: error.message })));
});
process.on('disconnect', () => process.exit());

async function run(order: LoadOrder): Promise<LoadReport> {
  const { ports, connections, seconds, requestsPerSecond = Number.POSITIVE_INFINITY } = order;
  const requests = prepareRequests(order);
  const latenciesUs = createHistogram({ figures: 4 });
  let sent = 0;
  const takeRequest = () => {
    sent += 1;
    const request = requests[sent % requests.length] as PreparedRequest;
    if (request.uniqueAt >= 0) request.bytes.write(toUnique(), request.uniqueAt, 'latin1');
    return request;
  };
  const options = { takeRequest, latenciesUs, everyMs: (1000 * connections) / requestsPerSecond };
  const opened = Array.from(
    { length: connections },
    (_, index) => new LoadConnection({ ...options, port: ports[index % ports.length] as number }),
  );
  await Promise.all(opened.map((connection) => connection.open()));
  const cpuBefore = process.cpuUsage();
  const countsFrom = performance.now() + RAMP_UP_MS;
  const endsAt = countsFrom + seconds * 1000;
  const isUsedUp = () => isDistinct(order) && sent > requests.length;
  await Promise.all(opened.map((connection) => connection.sendBetween(countsFrom, endsAt))).catch((error) => {
    if (!isUsedUp()) throw error;
  });
  if (isUsedUp()) throw new Error(`${requests.length} animals are too few: choose fewer --seconds`);
  const { user, system } = process.cpuUsage(cpuBefore);
  const percentile = (percent: number) => latenciesUs.percentile(percent) / 1000;
  return {
    requests: latenciesUs.count,
    sent,
    loadCpu: (user + system) / sent,
    p50: percentile(50),
    p99: percentile(99),
    p999: percentile(99.9),
  };
}

let lastUnique = Date.now() * 1000;

/** A number that no other request of this process has, nor one of a process before */
function toUnique(): string {
  lastUnique += 1;
  return String(lastUnique).padStart(UNIQUE.length, '0');
}

/** Every third pet, from the third on, is available. */
const AVAILABLE = Math.floor(PET_COUNT / STATUSES.length);

const isDistinct = ({ caseIds }: LoadOrder) => caseIds.some((id) => (cases[id] as Case).isDistinct);

function prepareRequests(order: LoadOrder): PreparedRequest[] {
  const { caseIds, keys } = order;
  const perKey = isDistinct(order)
    ? Math.floor(AVAILABLE / keys.length)
    : Math.ceil(PREPARED_REQUESTS / keys.length);
  return Array.from({ length: perKey * keys.length }, (_, index) => {
    const key = keys[index % keys.length] as string;
    const turn = index + Math.floor(index / keys.length);
    const requestCase: Case = cases[caseIds[turn % caseIds.length] as CaseId];
    const random = 1 + Math.floor(Math.random() * (PET_COUNT - 400));
    const n = isDistinct(order) ? STATUSES.length * (index + 1) : random;
    const bytes = Buffer.from(toRequest(requestCase, n, key), 'latin1');
    return {
      bytes,
      uniqueAt: bytes.indexOf(UNIQUE),
      status: Buffer.from(`${requestCase.status} `),
      expected: requestCase.expected(n).map((text) => Buffer.from(text, 'latin1')),
    };
  });
}

function toRequest({ method, path, body, headers = {} }: Case, n: number, key: string): string {
  const fields = Object.entries({ Host: '127.0.0.1', Authorization: `Bearer ${key}`, ...headers });
  const head = `${method} ${path(n)} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}`;
  if (body === undefined) return `${head}\r\n`;
  const text = body(n);
  return `${head}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
}

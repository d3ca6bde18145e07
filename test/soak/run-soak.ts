import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { until, untilListening } from '@animal-store/platform/testing';
import type { PostgresServer } from '../../packages/platform/test/support/postgres-server.js';
import { run as runService } from '../support/programs.js';
import { type Audit, auditDatabase } from './audit.js';
import { type Callers, createCallers } from './callers.js';
import { prepareCatalogue } from './catalogue.js';
import { type Faults, startFaults } from './faults.js';
import { Ledger } from './ledger.js';
import { createMix } from './mix.js';
import { createPet } from './pet-calls.js';
import { type Phase, type PhaseReport, runPhase } from './phases.js';
import { pick, random } from './random.js';
import { repeat, type SoakRequest, toRequest } from './requests.js';

export interface SoakOptions {
  /** Empty, and the soak's own */
  readonly server: PostgresServer;
  readonly redisUrl: string;
  /** Of the mixed phases together */
  readonly requests: number;
  readonly connections: readonly number[];
}

export interface SoakReport extends Omit<Audit, 'problems'> {
  readonly phases: readonly PhaseReport[];
  readonly faults: Faults['counts'];
  readonly problems: readonly string[];
}

/** What the contract promises for a change of a key */
const CHANGE_FELT_MS = 2_000;
/** From here on, more connections do not make a phase faster. */
const BUSY_CONNECTIONS = 16;
/** Of the phases without faults: few enough that not even batches of orders wait so long that they get a 503 */
const QUIET_CONNECTIONS = 4;
/** A wave of creates, of which PostgreSQL rejects some, for every so many mixed requests */
const REQUESTS_PER_REJECTED = 50;

/**
 * Runs one service under faults with mixed requests, whose responses are all checked, and compares the database with
 * what it acknowledged.
 */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const { server, redisUrl } = options;
  const databaseUrl = server.url;
  const environment = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    APP_ENV: 'staging',
    PORT: '0',
    // A request with a revoked key counts against the address, which all callers share.
    ANONYMOUS_PER_MINUTE: '1000000',
  };
  await prepareCatalogue(databaseUrl);
  const callers = await createCallers(environment);
  const ledger = new Ledger();
  const service = runService('main', [], environment);
  const rejected = new Set<string>();
  const unexpectedLines = collectUnexpectedLines(service.child.stdout as Readable, rejected);
  const url = await untilListening(service);
  const problems: string[] = [];
  const keyed: SoakRequest[] = [];
  const phases: PhaseReport[] = [];
  const faults = await startFaults(server, callers);
  const run = async (phase: Phase) => {
    if (problems.length > 0) return;
    const report = await runPhase(Number(new URL(url).port), phase);
    phases.push(report);
    problems.push(...report.problems);
  };
  try {
    const mix = createMix(ledger, callers, keyed);
    for (const [connections, count] of share(options)) {
      const requests = take(count, mix);
      await run({ name: `on ${connections}`, connections, requests, hasFaults: true });
    }
    await faults.stop();
    await untilReady(url);
    // Keys that are valid again may be refused for as long as a change takes to be felt.
    await delay(CHANGE_FELT_MS);
    const quiet = { connections: QUIET_CONNECTIONS, hasFaults: false };
    await run({ ...quiet, name: 'every key again', requests: repeatAll(keyed) });
    const rejections = take(options.requests / REQUESTS_PER_REJECTED, () =>
      createRejection(ledger, callers, rejected),
    );
    await run({ ...quiet, name: 'rejected rows', requests: rejections });
    await untilReady(url);
    if (service.child.exitCode !== null) problems.push('The process of the service ended');
  } finally {
    await faults.stop();
    service.child.kill('SIGTERM');
    await service.ended;
  }
  const audit = await auditDatabase(databaseUrl, ledger);
  problems.push(...audit.problems, ...unexpectedLines);
  return { ...audit, phases, faults: faults.counts, problems };
}

/** Shares the requests among the mixed phases so that the slow ones, on few connections, do not take longest. */
function share({ requests, connections }: SoakOptions): [connections: number, count: number][] {
  const weights = connections.map((count) => Math.min(count, BUSY_CONNECTIONS));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return connections.map((count, index) => [count, (requests * (weights[index] ?? 0)) / sum]);
}

/** One after the other, because a repetition of an order is noted as sent from then on. */
function* repeatAll(requests: readonly SoakRequest[]): Generator<SoakRequest, void> {
  for (const request of requests) yield repeat(request);
}

function* take(count: number, next: () => SoakRequest): Generator<SoakRequest, void> {
  for (let n = 0; n < count; n += 1) yield next();
}

/** A create, alone or in a batch, of which some are rejected by PostgreSQL. */
function createRejection(ledger: Ledger, { ample }: Callers, rejected: Set<string>): SoakRequest {
  const hasKey = random() < 0.5;
  const create = () => createPet(ledger, { hasKey, isRejected: random() < 0.2 });
  const calls = random() < 0.2 ? [create(), create(), create()] : [create()];
  const protocol = calls.length > 1 ? 'trpc' : pick(['rest', 'trpc'] as const);
  const request = toRequest(calls, { caller: pick(ample), protocol, hasKey });
  if (calls.every(({ isRejected }) => isRejected)) rejected.add(request.id);
  return request;
}

/** 499 is a client that left. */
const EXPECTED_STATUSES = new Set([200, 201, 204, 207, 401, 409, 429, 499, 503]);

/** The lines of requests in the service's log whose status nothing explains, as they come. */
function collectUnexpectedLines(log: Readable, rejected: ReadonlySet<string>): readonly string[] {
  const unexpected: string[] = [];
  createInterface({ input: log }).on('line', (line) => {
    if (!line.includes('"msg":"request"')) return;
    const { status, reqId } = JSON.parse(line) as { status: number; reqId: string };
    const isExpected = EXPECTED_STATUSES.has(status) || (status === 500 && rejected.has(reqId));
    if (!isExpected) unexpected.push(line);
  });
  return unexpected;
}

const RECOVERY_TIMEOUT_MS = 30_000;

async function untilReady(url: string): Promise<void> {
  await until(async () => {
    const response = await fetch(`${url}/health/ready`);
    const text = await response.text();
    return (response.status === 200 && text.includes('"status":"ok"')) || undefined;
  }, RECOVERY_TIMEOUT_MS);
}

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { addPets } from '../backend.js';
import { withClient } from '../postgres.js';
import { type Audit, auditDatabase } from './audit.js';
import { type Callers, createCallers } from './callers.js';
import { createPet, REJECTED_NAME } from './calls.js';
import { startFaults } from './faults.js';
import { Ledger } from './ledger.js';
import { createMix, repeat, type SoakRequest, toRequest } from './mix.js';
import { type Phase, type PhaseReport, runPhase } from './phases.js';
import { pick } from './random.js';
import { findUnexpectedLines, startSoakService } from './soak-service.js';

export interface SoakOptions {
  /** Migrated, empty, and the soak's own */
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** For the service's log */
  readonly folder: string;
  /** Of the mixed phases together */
  readonly requests: number;
  readonly connections: readonly number[];
}

export interface SoakReport extends Omit<Audit, 'problems'> {
  readonly phases: readonly PhaseReport[];
  readonly cancels: number;
  readonly terminations: number;
  readonly problems: readonly string[];
}

/** From here on, more connections do not make a phase faster. */
const BUSY_CONNECTIONS = 16;
/** Of the phases without faults: few enough that nothing waits so long that it gets a 503 */
const QUIET_CONNECTIONS = 16;
/** A wave of creates, of which PostgreSQL rejects some, for every so many mixed requests */
const REQUESTS_PER_REJECTED = 50;

/**
 * Runs one service under faults with mixed requests, whose responses are all checked, and compares the database with
 * what it acknowledged.
 */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const { databaseUrl, redisUrl, folder } = options;
  await prepareDatabase(databaseUrl);
  const callers = await createCallers(databaseUrl);
  const ledger = new Ledger();
  const logFile = join(folder, 'service.log');
  const service = await startSoakService({ databaseUrl, redisUrl, logFile });
  const problems: string[] = [];
  const keyed: SoakRequest[] = [];
  const rejected = new Set<string>();
  const phases: PhaseReport[] = [];
  const faults = await startFaults(databaseUrl);
  const run = async (phase: Phase) => {
    if (problems.length > 0) return;
    const report = await runPhase(service.port, phase);
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
    await untilReady(service.port);
    const quiet = { connections: QUIET_CONNECTIONS, hasFaults: false };
    await run({ ...quiet, name: 'every key again', requests: keyed.map(repeat).values() });
    const rejections = take(options.requests / REQUESTS_PER_REJECTED, () =>
      createRejection(ledger, callers, rejected),
    );
    await run({ ...quiet, name: 'rejected rows', requests: rejections });
    await untilReady(service.port);
    if (service.hasExited()) problems.push('The process of the service ended');
  } finally {
    await faults.stop();
    await service.close();
  }
  const audit = await auditDatabase(databaseUrl, ledger);
  problems.push(...audit.problems, ...(await findUnexpectedLines(logFile, rejected)));
  const { cancels, terminations } = faults;
  return { ...audit, phases, cancels, terminations, problems };
}

async function prepareDatabase(databaseUrl: string): Promise<void> {
  await addPets(databaseUrl);
  await withClient(databaseUrl, (client) =>
    client.query(
      `ALTER TABLE pets ADD CONSTRAINT pets_soak_rejects CHECK (name NOT LIKE '${REJECTED_NAME}%') NOT VALID`,
    ),
  );
}

/** Shares the requests among the mixed phases so that the slow ones, on few connections, do not take longest. */
function share({ requests, connections }: SoakOptions): [connections: number, count: number][] {
  const weights = connections.map((count) => Math.min(count, BUSY_CONNECTIONS));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return connections.map((count, index) => [count, (requests * (weights[index] ?? 0)) / sum]);
}

function* take(count: number, next: () => SoakRequest): Generator<SoakRequest, void> {
  for (let n = 0; n < count; n += 1) yield next();
}

/** A create, alone or in a batch, of which some are rejected by PostgreSQL. */
function createRejection(ledger: Ledger, { ample }: Callers, rejected: Set<string>): SoakRequest {
  const hasKey = Math.random() < 0.5;
  const create = () => createPet(ledger, { hasKey, isRejected: Math.random() < 0.2 });
  const calls = Math.random() < 0.2 ? [create(), create(), create()] : [create()];
  const protocol = calls.length > 1 ? 'trpc' : pick(['rest', 'trpc'] as const);
  const request = toRequest(calls, { caller: pick(ample), protocol, hasKey });
  if (calls.every(({ isRejected }) => isRejected)) rejected.add(request.id);
  return request;
}

const READY_TIMEOUT_MS = 10_000;
const READY_POLL_MS = 100;

async function untilReady(port: number): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/health/ready`);
    const text = await response.text();
    if (response.status === 200 && text.includes('"status":"ok"')) return;
    if (performance.now() > deadline) throw new Error(`The service does not recover: ${text}`);
    await delay(READY_POLL_MS);
  }
}

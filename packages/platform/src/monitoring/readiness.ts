import type { Limiter } from '@animal-store/limits';
import type { FastifyBaseLogger } from 'fastify';
import type { Database } from '../connections/client.js';
import { StandbyError } from '../connections/standby.js';
import { checkDatabase } from '../database/check-database.js';
import type { Definition } from '../definition/definition.js';
import { READINESS_TIMEOUT_MS, withTimeout } from '../timing/timeouts.js';

/** How long a successful check stays valid. */
const READINESS_TTL_MS = 1_000;

/** The body of `/health/ready`. */
export interface ReadinessReport {
  /** `degraded` when limits are counted without Redis, which does not keep the service from serving */
  readonly status: 'ok' | 'degraded' | 'unavailable' | 'draining';
  readonly database?: 'ok' | 'unavailable' | 'standby';
  /** Where limits are counted */
  readonly limits?: string;
  /** A problem that does not keep the service from serving */
  readonly warning?: string;
}

/** Whether requests can be served, for the probe and the metrics alike. */
export interface Readiness {
  /** Resolves while requests can be served, with a warning for the operator if there is one */
  readonly check: () => Promise<string | undefined>;
  /** Never rejects */
  readonly report: () => Promise<ReadinessReport>;
}

interface ReadinessOptions {
  /** Of the service: see checkService */
  readonly check: () => Promise<string | undefined>;
  readonly limiter: Pick<Limiter, 'state'>;
  readonly log: FastifyBaseLogger;
}

export function createReadiness({ limiter, log, ...options }: ReadinessOptions): Readiness {
  const check = createCachedCheck(options.check);
  const report = async (): Promise<ReadinessReport> => {
    try {
      const warning = await check();
      const limits = limiter.state;
      const status = limits === 'degraded' ? 'degraded' : 'ok';
      return { status, database: 'ok', limits, ...(warning !== undefined && { warning }) };
    } catch (error) {
      log.warn({ err: error }, 'not ready: the database cannot be used');
      const database = error instanceof StandbyError ? 'standby' : 'unavailable';
      return { status: 'unavailable', database, limits: limiter.state };
    }
  };
  return { check, report };
}

/** Tries what requests use: reads, and statements. Resolves with a warning, if there is one, while they can be served. */
export async function checkService(definition: Definition, database: Database): Promise<string | undefined> {
  // Started first, awaited last: a late process has no time for one check after the other.
  const statements = database.checkStatements();
  statements.catch(() => {});
  const reads = { ...database, pool: database.reads.pool };
  const warning = await checkDatabase(definition, reads);
  await statements;
  return warning;
}

/**
 * Shares one check among any number of probes, whatever the database does. One runs at a time, for READINESS_TIMEOUT_MS
 * at most. A success is valid for READINESS_TTL_MS. A failure is not kept, so that the first probe after a recovery sees
 * the recovery.
 *
 * @param now a monotonic clock, in milliseconds
 */
export function createCachedCheck<Result>(
  check: () => Promise<Result>,
  now: () => number = () => performance.now(),
): () => Promise<Result> {
  let valid: { readonly result: Result; readonly until: number } | undefined;
  let running: Promise<Result> | undefined;
  const run = async () => {
    try {
      const result = await withTimeout(READINESS_TIMEOUT_MS, check());
      valid = { result, until: now() + READINESS_TTL_MS };
      return result;
    } finally {
      running = undefined;
    }
  };
  return async () => {
    if (valid !== undefined && now() < valid.until) return valid.result;
    running ??= run();
    return running;
  };
}

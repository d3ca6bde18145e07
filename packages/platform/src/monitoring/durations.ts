import { Histogram } from 'prom-client';

/** In seconds: from a lookup in a warm database to the wait of a client while the database is unavailable. */
const DURATION_BUCKETS = [
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/**
 * A histogram of durations that is in no registry yet.
 *
 * @param name with the store's prefix
 */
export function createDurations(name: string, help: string, labelNames: string[] = []): Histogram {
  return new Histogram({
    name: name,
    help,
    labelNames,
    buckets: DURATION_BUCKETS,
    registers: [],
  });
}

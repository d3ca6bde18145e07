import { Histogram } from 'prom-client';

/** In seconds: from a lookup in a warm database to the wait of a client while the database is unavailable. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Counts durations, by the values of its labels in their order. */
export interface Durations {
  /** For the registry that exports it; the histogram itself is in none. */
  readonly histogram: Histogram;
  /** Each combination of labels is resolved once and kept, so there must be few. */
  observe(seconds: number, ...labels: string[]): void;
}

/** Measures on a hot path: an observation takes a fraction of a microsecond. */
export function createDurations(name: string, help: string, labelNames: string[] = []): Durations {
  const histogram = new Histogram({ name, help, labelNames, buckets: DURATION_BUCKETS, registers: [] });
  const children = new Map<string, Histogram.Internal<string>>();
  return {
    histogram,
    observe(seconds, ...labels) {
      const key = labels.join(' ');
      let child = children.get(key);
      if (child === undefined) {
        child = histogram.labels(...labels);
        children.set(key, child);
      }
      child.observe(seconds);
    },
  };
}

/** Runs something and observes how long it took to settle, whether it resolved or rejected. */
export async function measure<T>(observe: (seconds: number) => void, run: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  try {
    return await run();
  } finally {
    observe((performance.now() - startedAt) / 1000);
  }
}

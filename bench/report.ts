import { type Case, type CaseId, cases, restCounterparts } from './cases.js';
import type { Samples } from './rounds.js';
import type { BenchServer } from './servers.js';
import { median, printTable, quantile } from './table.js';

export type Row = readonly (string | number)[];

export interface Summary {
  readonly headings: readonly string[];
  /** One per case and server */
  readonly rows: readonly Row[];
  /** The name of each server, and its peak memory in MB */
  readonly memory: readonly Row[];
}

/** Prints what each server achieved, and how that compares with the baseline. */
export function printSummary(
  samples: Samples,
  caseIds: readonly CaseId[],
  servers: readonly BenchServer[],
): Summary {
  const headings = [
    'case',
    'server',
    'requests/s',
    'of the baseline',
    'CPU µs',
    'of the baseline',
    'p50 ms',
    'p99 ms',
  ];
  const rows = caseIds.flatMap((caseId) =>
    servers
      .filter(({ name }) => samples.has(name, caseId))
      .map(({ name }) => summarize(samples, caseId, name)),
  );
  const memory = servers.map((server) => [server.name, Math.round(server.peakMemory())]);
  printTable(headings, rows);
  printTable(['server', 'peak memory MB'], memory);
  return { headings, rows, memory };
}

function summarize(samples: Samples, caseId: CaseId, server: string): Row {
  const { name }: Case = cases[caseId];
  const ofBaseline = (figure: 'requestsPerSecond' | 'cpu') =>
    median(samples.ratios(server, 'baseline', caseId, figure, restCounterparts[caseId]));
  return [
    name,
    server,
    Math.round(samples.median(server, caseId, 'requestsPerSecond')),
    toPercent(ofBaseline('requestsPerSecond')),
    samples.median(server, caseId, 'cpu').toFixed(1),
    // Inverted, so that more is better in both columns.
    toPercent(1 / ofBaseline('cpu')),
    samples.median(server, caseId, 'p50').toFixed(2),
    samples.median(server, caseId, 'p99').toFixed(2),
  ];
}

/** A dash when the baseline was not measured. */
function toPercent(ratio: number): string {
  return Number.isNaN(ratio) ? '–' : `${Math.round(100 * ratio)} %`;
}

/**
 * Prints service / before for every case: the median of the ratios of all rounds, and between which values the middle
 * half of them is. A median within a wide middle half may be chance.
 */
export function printComparison(samples: Samples, caseIds: readonly CaseId[]): void {
  const compare = (caseId: CaseId, figure: 'requestsPerSecond' | 'cpu') => {
    const ratios = samples.ratios('service', 'before', caseId, figure);
    const middleHalf = [0.25, 0.75].map((share) => quantile(ratios, share).toFixed(2));
    return [median(ratios).toFixed(3), middleHalf.join(' to ')];
  };
  printTable(
    ['service / before', 'requests/s', 'middle half', 'CPU per request', 'middle half'],
    caseIds
      .filter((caseId) => samples.has('service', caseId) && samples.has('before', caseId))
      .map((caseId) => [
        (cases[caseId] as Case).name,
        ...compare(caseId, 'requestsPerSecond'),
        ...compare(caseId, 'cpu'),
      ]),
  );
}

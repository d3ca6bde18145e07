import { type Case, type CaseId, cases } from './cases.js';
import type { Measurement, RunOptions } from './rounds.js';
import type { Cell, Samples } from './samples.js';
import { median, printTable } from './table.js';

/** What was measured. */
export interface Report extends Measurement {
  /** The names of the servers */
  readonly names: readonly string[];
  readonly caseIds: readonly CaseId[];
  readonly run: RunOptions;
}

export interface Table {
  readonly headings: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

/** Prints, for each load, how the servers compare with the baseline, and all figures. */
export function printReport(report: Report): void {
  const hasBaseline = report.names.includes('baseline');
  for (const connections of report.run.connections) {
    process.stdout.write(`${describeLoad(connections)}\n\n`);
    if (hasBaseline) print(compareWithBaseline(report, connections));
    print(listFigures(report, connections));
  }
  print(listMemory(report));
}

export function describeLoad(connections: number): string {
  return connections === 1 ? '1 connection' : `${connections} connections`;
}

/** Per case: each server's requests per second and p99 beside the baseline's, and the service's beside the limit. */
export function compareWithBaseline({ samples, names, caseIds }: Report, connections: number): Table {
  const compared = names.filter((name) => name !== 'baseline');
  const served = compared.filter((name) => name !== 'raw');
  const hasLimit = names.includes('service') && names.includes('raw');
  const toRow = (caseId: CaseId) => {
    const at = (server: string): Cell => ({ server, caseId, connections });
    const ofLimit = () => median(samples.ratios(at('service'), { server: 'raw' }, 'requestsPerSecond'));
    return [
      (cases[caseId] as Case).name,
      ...compared.map((name) => toPercent(samples.ofBaseline(at(name), 'requestsPerSecond'))),
      ...(hasLimit ? [toPercent(ofLimit())] : []),
      ...served.map((name) => toTimes(samples.ofBaseline(at(name), 'p99'))),
    ];
  };
  return {
    headings: [
      'case',
      ...compared,
      ...(hasLimit ? ['service of raw'] : []),
      ...served.map((name) => `p99 ${name}`),
    ],
    rows: caseIds.filter((caseId) => isMeasured(samples, names, caseId, connections)).map(toRow),
  };
}

/** Per case and server: all figures. */
export function listFigures({ samples, names, caseIds }: Report, connections: number): Table {
  const toRow = (cell: Cell) => [
    (cases[cell.caseId] as Case).name,
    cell.server,
    Math.round(samples.median(cell, 'requestsPerSecond')),
    toPercent(samples.ofBaseline(cell, 'requestsPerSecond')),
    toPercent(median(samples.ratios(cell, { server: 'raw' }, 'requestsPerSecond'))),
    ...(['p50', 'p99', 'p999'] as const).map((figure) => toFixed(samples.median(cell, figure), 2)),
    toTimes(samples.ofBaseline(cell, 'p99')),
    ...CPU_FIGURES.map((figure) => toFixed(samples.median(cell, figure), 1)),
  ];
  const cells = caseIds.flatMap((caseId) => names.map((server) => ({ server, caseId, connections })));
  return { headings: FIGURE_HEADINGS, rows: cells.filter((cell) => samples.has(cell)).map(toRow) };
}

const CPU_FIGURES = ['cpu', 'postgresCpu', 'redisCpu', 'loadCpu'] as const;
const FIGURE_HEADINGS = [
  'case',
  'server',
  'requests/s',
  'of baseline',
  'of raw',
  'p50 ms',
  'p99 ms',
  'p99.9 ms',
  'p99 of baseline',
  'CPU µs',
  'PostgreSQL µs',
  'Redis µs',
  'load µs',
];

export function listMemory({ peakMemory }: Report): Table {
  return {
    headings: ['server', 'peak memory MB'],
    rows: [...peakMemory].map(([name, megabytes]) => [name, toFixed(megabytes, 0)]),
  };
}

/** How many times as many gets per second batches of ten achieve as single calls over tRPC. NaN when not measured. */
export function batchGain({ samples }: Report, connections: number): number {
  const batch: Cell = { server: 'service', caseId: 'rpcBatch', connections };
  return 10 * median(samples.ratios(batch, { caseId: 'rpcGet' }, 'requestsPerSecond'));
}

/** The cases in which the service does worse than the baseline, with their figures. */
export function listSlower({ samples, caseIds }: Report, connections: number) {
  const list = (figure: 'requestsPerSecond' | 'p99', isWorse: (ratio: number) => boolean) =>
    caseIds
      .map((caseId) => ({
        caseId,
        name: (cases[caseId] as Case).name,
        ratio: samples.ofBaseline({ server: 'service', caseId, connections }, figure),
      }))
      .filter(({ caseId, ratio }) => caseId !== 'rpcBatch' && isWorse(ratio));
  return {
    throughput: list('requestsPerSecond', (ratio) => ratio < 0.995).map(
      ({ name, ratio }) => `${name} (${toPercent(ratio)})`,
    ),
    p99: list('p99', (ratio) => ratio > 1.05).map(({ name, ratio }) => `${name} (${toTimes(ratio)})`),
  };
}

function isMeasured(
  samples: Samples,
  names: readonly string[],
  caseId: CaseId,
  connections: number,
): boolean {
  return names.some((server) => samples.has({ server, caseId, connections }));
}

function print({ headings, rows }: Table): void {
  printTable(headings, rows);
}

/** A dash when one of the two was not measured. */
function toPercent(ratio: number): string {
  return Number.isNaN(ratio) ? '–' : `${Math.round(100 * ratio)} %`;
}

function toTimes(ratio: number): string {
  return Number.isNaN(ratio) ? '–' : `${ratio.toFixed(2)} ×`;
}

function toFixed(value: number, digits: number): string {
  return Number.isNaN(value) ? '–' : value.toFixed(digits);
}

import type { Case } from './case.js';
import { type CaseId, cases, describeLoad, type Load } from './cases.js';
import type { Measurement, RunOptions } from './rounds.js';
import type { Cell, Figure } from './samples.js';
import { COMPARED_NAMES, type ServerName } from './servers.js';
import { median, printTable, quantile, type Table } from './table.js';

/** What was measured. */
export interface Report extends Measurement {
  readonly names: readonly ServerName[];
  readonly caseIds: readonly CaseId[];
  readonly run: RunOptions;
}

/** Prints, for each load, how the servers compare, and all figures. */
export function printReport(report: Report): void {
  for (const load of report.run.loads) {
    process.stdout.write(`${describeLoad(load, report.run.networkMs)}\n\n`);
    if (report.names.includes('baseline')) printTable(compareWithBaseline(report, load));
    printTable(listFigures(report, load));
    for (const name of COMPARED_NAMES) {
      if (report.names.includes(name)) printTable(compareWith(name, report, load));
    }
  }
  printTable(listMemory(report));
}

/**
 * Per case: each server's requests per second and p99 beside the baseline's, and the CPU time that a request costs each of
 * them. The load shares its core with PostgreSQL, so requests per second favour whoever asks PostgreSQL for less.
 */
export function compareWithBaseline({ samples, names, caseIds }: Report, load: Load): Table {
  const compared = names.filter((name) => name !== 'baseline');
  const toRow = (caseId: CaseId) => {
    const at = (server: string): Cell => ({ server, caseId, ...load });
    return [
      (cases[caseId] as Case).name,
      ...compared.map((name) => toPercent(samples.ofBaseline(at(name), 'requestsPerSecond'))),
      ...compared.map((name) => toTimes(samples.ofBaseline(at(name), 'p99'))),
      ...names.map((name) => toFixed(samples.median(at(name), 'cpu'), 0)),
    ];
  };
  const isMeasured = (caseId: CaseId) => names.some((server) => samples.has({ server, caseId, ...load }));
  return {
    headings: [
      ...['case', ...compared, ...compared.map((name) => `p99 ${name}`)],
      ...names.map((name) => `CPU µs ${name}`),
    ],
    rows: caseIds.filter(isMeasured).map(toRow),
  };
}

/**
 * Per case, service / another checkout: the median of the ratios of all rounds, and between which values the middle half of them
 * is. A median within a wide middle half may be chance.
 */
function compareWith(name: ServerName, { samples, caseIds }: Report, load: Load): Table {
  const toCells = (caseId: CaseId, figure: Figure) => {
    const ratios = samples.ratios({ server: 'service', caseId, ...load }, { server: name }, figure);
    const middleHalf = [0.25, 0.75].map((share) => quantile(ratios, share).toFixed(2));
    return [median(ratios).toFixed(3), middleHalf.join(' to ')];
  };
  const isMeasured = (caseId: CaseId) =>
    ['service', name].every((server) => samples.has({ server, caseId, ...load }));
  return {
    headings: [
      ...[`service / ${name}`, 'requests/s', 'middle half'],
      ...['CPU per request', 'middle half', 'p99', 'middle half'],
    ],
    rows: caseIds
      .filter(isMeasured)
      .map((caseId) => [
        (cases[caseId] as Case).name,
        ...toCells(caseId, 'requestsPerSecond'),
        ...toCells(caseId, 'cpu'),
        ...toCells(caseId, 'p99'),
      ]),
  };
}

/** Per case and server: all figures. */
function listFigures({ samples, names, caseIds }: Report, load: Load): Table {
  const toRow = (cell: Cell) => [
    (cases[cell.caseId] as Case).name,
    cell.server,
    Math.round(samples.median(cell, 'requestsPerSecond')),
    toPercent(samples.ofBaseline(cell, 'requestsPerSecond')),
    ...(['p50', 'p99', 'p999'] as const).map((figure) => toFixed(samples.median(cell, figure), 2)),
    toTimes(samples.ofBaseline(cell, 'p99')),
    ...CPU_FIGURES.map((figure) => toFixed(samples.median(cell, figure), 1)),
  ];
  const cells = caseIds.flatMap((caseId) => names.map((server) => ({ server, caseId, ...load })));
  return { headings: FIGURE_HEADINGS, rows: cells.filter((cell) => samples.has(cell)).map(toRow) };
}

const CPU_FIGURES = ['cpu', 'postgresCpu', 'redisCpu', 'loadCpu'] as const;
const FIGURE_HEADINGS = [
  ...['case', 'server', 'requests/s', 'of baseline', 'p50 ms', 'p99 ms', 'p99.9 ms'],
  ...['p99 of baseline', 'CPU µs', 'PostgreSQL µs', 'Redis µs', 'load µs'],
];

export function listMemory({ peakMemory }: Report): Table {
  return {
    headings: ['server', 'peak memory MB'],
    rows: [...peakMemory].map(([name, megabytes]) => [name, toFixed(megabytes, 0)]),
  };
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

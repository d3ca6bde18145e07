import { type Case, cases } from './cases.js';
import type { Report } from './report.js';
import type { Figure } from './samples.js';
import { median, printTable, quantile } from './table.js';

/**
 * Prints service / before for every case: the median of the ratios of all rounds, and between which values the middle
 * half of them is. A median within a wide middle half may be chance.
 */
export function printComparison({ samples, caseIds, run }: Report): void {
  for (const connections of run.connections) {
    const compare = (caseId: Report['caseIds'][number], figure: Figure) => {
      const ratios = samples.ratios({ server: 'service', caseId, connections }, { server: 'before' }, figure);
      const middleHalf = [0.25, 0.75].map((share) => quantile(ratios, share).toFixed(2));
      return [median(ratios).toFixed(3), middleHalf.join(' to ')];
    };
    const isMeasured = (caseId: Report['caseIds'][number]) =>
      ['service', 'before'].every((server) => samples.has({ server, caseId, connections }));
    process.stdout.write(`service / before, ${connections} connections\n\n`);
    printTable(
      ['case', 'requests/s', 'middle half', 'CPU per request', 'middle half', 'p99', 'middle half'],
      caseIds
        .filter(isMeasured)
        .map((caseId) => [
          (cases[caseId] as Case).name,
          ...compare(caseId, 'requestsPerSecond'),
          ...compare(caseId, 'cpu'),
          ...compare(caseId, 'p99'),
        ]),
    );
  }
}

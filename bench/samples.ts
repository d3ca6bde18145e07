import { type CaseId, counterparts, type Load } from './cases.js';
import { median } from './table.js';

/** One case on one server at one load: what is measured once per round. */
export interface Cell extends Load {
  readonly server: string;
  readonly caseId: CaseId;
}

/** A cell in one round. CPU times are microseconds per request, latencies milliseconds. */
export interface Sample {
  readonly requestsPerSecond: number;
  /** Of the server */
  readonly cpu: number;
  readonly postgresCpu: number;
  readonly redisCpu: number;
  /** Of the load generator */
  readonly loadCpu: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}
export type Figure = keyof Sample;

/** The samples of a run: for each cell one per round, in the order of the rounds. */
export class Samples {
  readonly #samples = new Map<string, Sample[]>();

  add(cell: Cell, sample: Sample): void {
    this.#samples.set(toKey(cell), [...this.#find(cell), sample]);
  }

  has(cell: Cell): boolean {
    return this.#find(cell).length > 0;
  }

  /** NaN for a cell that was not measured. */
  median(cell: Cell, figure: Figure): number {
    return median(this.#find(cell).map((sample) => sample[figure]));
  }

  /**
   * A cell's figure divided by another's, once per round. What slows the machine for a while slows both of a round, so
   * the median of these ratios is much steadier than the ratio of two medians. NaN when the other was not measured.
   */
  ratios(cell: Cell, other: Partial<Cell>, figure: Figure): number[] {
    const others = this.#find({ ...cell, ...other });
    return this.#find(cell).map((sample, round) => sample[figure] / (others[round]?.[figure] ?? Number.NaN));
  }

  /** The median of a figure's ratios to the baseline: to its counterpart of the case where it has not got the case. */
  ofBaseline(cell: Cell, figure: Figure): number {
    const caseId = counterparts[cell.caseId] ?? cell.caseId;
    return median(this.ratios(cell, { server: 'baseline', caseId }, figure));
  }

  #find(cell: Cell): readonly Sample[] {
    return this.#samples.get(toKey(cell)) ?? [];
  }
}

function toKey({ server, caseId, connections, keys }: Cell): string {
  return `${server} ${caseId} ${connections} ${keys}`;
}

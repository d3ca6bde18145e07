import type { OperationComparison } from './comparison.js';
import type { Operation } from './document.js';

/** The least stable first. */
const LEVELS = ['experimental', 'beta', 'stable'];

/** Whether an operation keeps the rules: all do but those that are marked as experimental. */
export function isStable(operation: Operation): boolean {
  return operation['x-stability'] !== 'experimental';
}

export function compareStability({ old, current, report }: OperationComparison): void {
  const [was, is] = [old.operation['x-stability'], current.operation['x-stability']];
  if (was !== undefined && is === undefined) report('stability-kept', `x-stability is absent, was ${was}`);
  else if (rank(is) < rank(was)) report('stability-kept', `it is ${is}, was ${was ?? 'not marked'}`);
}

/** Without a mark, an operation promises the same as a stable one. */
function rank(stability = 'stable'): number {
  return LEVELS.indexOf(stability);
}

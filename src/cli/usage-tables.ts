import { USAGE_DAYS, type Usage } from '../keys/usage-store.js';
import { formatTable } from './tables.js';

/** An operation of the service, as far as its use is shown. */
export interface OperationName {
  readonly name: string;
  readonly isDeprecated: boolean;
}

/** What a key has called in the last 30 days, calls of deprecated operations counted apart. */
export interface UsageSummary {
  /** Calls of operations that are not deprecated */
  readonly requests: number;
  readonly deprecatedRequests: number;
  readonly usage: readonly (Usage & { readonly deprecated: boolean })[];
}

export function summarise(rows: readonly Usage[], operations: readonly OperationName[]): UsageSummary {
  const deprecated = new Set(operations.flatMap(({ name, isDeprecated }) => (isDeprecated ? [name] : [])));
  const usage = rows.map((row) => ({ ...row, deprecated: deprecated.has(row.operation) }));
  const count = (isDeprecated: boolean) => sum(usage.filter((row) => row.deprecated === isDeprecated));
  return { requests: count(false), deprecatedRequests: count(true), usage };
}

/** Usage for people: a line for each day with requests, a column for each operation. */
export function describeUsage({ usage, ...counts }: UsageSummary, operations: readonly OperationName[]) {
  if (usage.length === 0) return `No requests in the last ${USAGE_DAYS} days.\n`;
  const names = [...new Set([...operations.map(({ name }) => name), ...usage.map((row) => row.operation)])];
  const deprecated = new Set(operations.flatMap(({ name, isDeprecated }) => (isDeprecated ? [name] : [])));
  const headings = names.map((name) => (deprecated.has(name) ? `${name} (deprecated)` : name));
  const toCells = (rows: readonly Usage[]) =>
    names.map((name) => String(sum(rows.filter(({ operation }) => operation === name))));
  const days = [...new Set(usage.map(({ day }) => day))];
  const lines = days.map((day) => [day, ...toCells(usage.filter((row) => row.day === day))]);
  const table = formatTable([['DAY (UTC)', ...headings], ...lines, ['all', ...toCells(usage)]]);
  return `${table}\n${describeDeprecated(counts, usage)}`;
}

function describeDeprecated(
  { requests, deprecatedRequests }: Omit<UsageSummary, 'usage'>,
  usage: UsageSummary['usage'],
): string {
  const last = usage.findLast(({ deprecated }) => deprecated);
  if (last === undefined) return 'It has called no deprecated operation.\n';
  const all = requests + deprecatedRequests;
  return `${deprecatedRequests} of ${all} requests called a deprecated operation, the last on ${last.day}.\n`;
}

function sum(rows: readonly Usage[]): number {
  return rows.reduce((total, { requests }) => total + requests, 0);
}

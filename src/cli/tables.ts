import { USAGE_DAYS, type Usage } from '../keys/usage.js';
import type { Operation } from '../operations/list-operations.js';

export type UsageSummary = Readonly<ReturnType<typeof summariseUsage>>;

/** The calls of a key in the last 30 days: `requests` are those of operations that are not deprecated. */
export function summariseUsage(rows: readonly Usage[], operations: readonly Operation[]) {
  const deprecated = listDeprecated(operations);
  const usage = rows.map((row) => ({ ...row, deprecated: deprecated.has(row.operation) }));
  const count = (isDeprecated: boolean) => sum(usage.filter((row) => row.deprecated === isDeprecated));
  return { requests: count(false), deprecatedRequests: count(true), usage };
}

/** Usage for people: one line per day with requests, one column per operation. */
export function formatUsage(summary: UsageSummary, operations: readonly Operation[]): string {
  const { usage } = summary;
  if (usage.length === 0) return `No requests in the last ${USAGE_DAYS} days.\n`;
  const names = [...new Set([...operations.map(({ name }) => name), ...usage.map((row) => row.operation)])];
  const deprecated = listDeprecated(operations);
  const headings = names.map((name) => (deprecated.has(name) ? `${name} (deprecated)` : name));
  const toCells = (rows: readonly Usage[]) =>
    names.map((name) => String(sum(rows.filter(({ operation }) => operation === name))));
  const days = [...new Set(usage.map(({ day }) => day))];
  const lines = days.map((day) => [day, ...toCells(usage.filter((row) => row.day === day))]);
  const table = formatTable([['DAY (UTC)', ...headings], ...lines, ['all', ...toCells(usage)]]);
  return `${table}\n${formatDeprecated(summary)}`;
}

function formatDeprecated({ requests, deprecatedRequests, usage }: UsageSummary): string {
  const last = usage.findLast(({ deprecated }) => deprecated);
  if (last === undefined) return 'It has called no deprecated operation.\n';
  const all = requests + deprecatedRequests;
  return `${deprecatedRequests} of ${all} requests called a deprecated operation, the last on ${last.day}.\n`;
}

function listDeprecated(operations: readonly Operation[]): ReadonlySet<string> {
  return new Set(operations.filter(({ deprecation }) => deprecation).map(({ name }) => name));
}

function sum(rows: readonly Usage[]): number {
  return rows.reduce((total, { requests }) => total + requests, 0);
}

export function toJsonLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

/** Rows of cells as lines of aligned columns. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const columns = rows[0]?.keys() ?? [];
  const widths = Array.from(columns, (column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

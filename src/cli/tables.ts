import { type KeyUsage, USAGE_DAYS, type Usage } from '../keys/usage.js';
import { listDeprecated, type Operation } from '../operations/list-operations.js';

export type UsageSummary = Readonly<ReturnType<typeof summariseUsage>>;

/** The calls of a key in the last 30 days: `requests` are all, `deprecatedRequests` those of deprecated operations. */
export function summariseUsage(rows: readonly Usage[], operations: readonly Operation[]) {
  const deprecated = listDeprecated(operations);
  const usage = rows.map((row) => ({ ...row, deprecated: deprecated.has(row.operation) }));
  return { requests: sum(usage), deprecatedRequests: sum(usage.filter((row) => row.deprecated)), usage };
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
  return `${deprecatedRequests} of ${requests} requests called a deprecated operation, the last on ${last.day}.\n`;
}

/** What each key has called in the last 30 days, the most active first. */
export function summariseKeys(rows: readonly KeyUsage[], operations: readonly Operation[]) {
  const byKey = new Map<string, KeyUsage[]>();
  for (const row of rows) byKey.set(row.id, [...(byKey.get(row.id) ?? []), row]);
  return [...byKey.values()]
    .map((usage) => {
      const { requests, deprecatedRequests } = summariseUsage(usage, operations);
      const lastDay = usage.reduce((last, { day }) => (day > last ? day : last), '');
      const { id = '', name = '' } = usage[0] ?? {};
      return { id, name, requests, deprecatedRequests, lastDay };
    })
    .sort((a, b) => b.requests - a.requests);
}

/** The same for people: one line per key. */
export function formatKeyUsage(keys: ReturnType<typeof summariseKeys>): string {
  if (keys.length === 0) return `No requests in the last ${USAGE_DAYS} days.\n`;
  const lines = keys.map(({ id, name, requests, deprecatedRequests, lastDay }) =>
    [id, name, requests, deprecatedRequests, lastDay].map(String),
  );
  return formatTable([['ID', 'NAME', 'REQUESTS', 'DEPRECATED', 'LAST DAY (UTC)'], ...lines]);
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

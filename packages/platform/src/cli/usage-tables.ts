import { listDeprecated } from '../contract/deprecation.js';
import type { Operation } from '../operations/list-operations.js';
import { maskControls } from '../process/terminal-text.js';
import type { Counts, DayRange, KeyUsage, OwnerUsage, Usage } from '../usage/store.js';
import { formatSparkline, toDayCounts } from './sparkline.js';

/** How much of an id tables show. Every command accepts as much. */
const SHORT_ID_CHARACTERS = 8;
/** As many as the id of a customer has at Stripe */
export const OWNER_CHARACTERS = 18;

/**
 * Sums of usage. `requests` were admitted, and `deprecatedRequests` are those of deprecated operations; denied requests
 * are counted apart. A last day is the day of the last request, admitted or denied.
 */
export function summariseUsage<Row extends Usage>(rows: readonly Row[], operations: readonly Operation[]) {
  const names = listDeprecated(operations);
  const usage = rows.map((row) => ({ ...row, deprecated: names.has(row.operation) }));
  const deprecated = usage.filter((row) => row.deprecated);
  return {
    requests: sum(usage),
    denied: sum(usage, 'denied'),
    deprecatedRequests: sum(deprecated),
    deprecatedDenied: sum(deprecated, 'denied'),
    lastDay: findLastDay(usage),
    lastDeprecatedDay: findLastDay(deprecated),
    usage,
  };
}

/** Usage for people: one line per day with requests, one column per operation, one for what was denied, and a sparkline. */
export function formatUsage(
  rows: readonly Usage[],
  operations: readonly Operation[],
  range: DayRange,
): string {
  const { lastDay, lastDeprecatedDay, ...totals } = summariseUsage(rows, operations);
  if (lastDay === null) return formatNone('', range);
  const names = [...new Set([...operations.map(({ name }) => name), ...rows.map((row) => row.operation)])];
  const deprecated = listDeprecated(operations);
  const toLine = (title: string, chosen: readonly Usage[]) => [
    title,
    ...names.map((name) => String(sum(chosen.filter(({ operation }) => operation === name)))),
    String(sum(chosen, 'denied')),
  ];
  const days = [...new Set(rows.map(({ day }) => day))];
  const table = formatTable([
    ['DAY (UTC)', ...names.map((name) => (deprecated.has(name) ? `${name} (deprecated)` : name)), 'denied'],
    ...days.map((each) =>
      toLine(
        each,
        rows.filter(({ day }) => day === each),
      ),
    ),
    toLine('all', rows),
  ]);
  const report = `${table}\n\nDay by day: ${formatSparkline(toDayCounts(rows), range)}`;
  if (lastDeprecatedDay === null) return `${report}\n\nThe key has called no deprecated operation.`;
  const { requests, deprecatedRequests, denied, deprecatedDenied } = totals;
  const alsoDenied =
    deprecatedDenied === 0 ? '' : `, and ${deprecatedDenied} of the ${denied} that were denied`;
  return `${report}\n\n${deprecatedRequests} of ${requests} requests called a deprecated operation${alsoDenied}, the last on ${lastDeprecatedDay}.`;
}

/** What each key has called, with its rows. The key with the most requests, or the most denied requests, comes first. */
export function summariseKeys(
  rows: readonly KeyUsage[],
  operations: readonly Operation[],
  by: keyof Counts = 'requests',
) {
  const byKey = new Map<string, KeyUsage[]>();
  for (const row of rows) {
    const calls = byKey.get(row.id);
    if (calls === undefined) byKey.set(row.id, [row]);
    else calls.push(row);
  }
  return [...byKey]
    .map(([id, calls]) => {
      const { name = '', owner = null } = calls[0] ?? {};
      return { id, name, owner, ...summariseUsage(calls, operations) };
    })
    .sort((a, b) => b[by] - a[by]);
}

/** The usage of keys for people, one line per key. */
export function formatKeyUsage(
  keys: ReturnType<typeof summariseKeys>,
  kind: string,
  range: DayRange,
): string {
  if (keys.length === 0) return formatNone(kind, range);
  const lines = keys.map((key) => [
    ...[
      shortenId(key.id),
      shorten(key.name, 24),
      key.owner === null ? '-' : shorten(key.owner, OWNER_CHARACTERS),
      String(key.requests),
      String(key.denied),
      key.lastDay ?? '',
    ],
    ...[String(key.deprecatedRequests), key.lastDeprecatedDay ?? '-'],
    formatSparkline(
      key.usage.flatMap(({ byDay = {} }) => Object.entries(byDay)),
      range,
    ),
  ]);
  return formatTable([
    [
      'ID',
      'NAME',
      'OWNER',
      'REQUESTS',
      'DENIED',
      'LAST DAY (UTC)',
      'DEPRECATED',
      'LAST DAY (UTC)',
      'DAY BY DAY',
    ],
    ...lines,
  ]);
}

/** A line for each operation of an owner; `-` stands for the keys without one. */
export function formatOwnerUsage(rows: readonly OwnerUsage[], range: DayRange): string {
  if (rows.length === 0) return formatNone('', range);
  const lines = rows.map(({ owner, operation, requests, denied }) => [
    ...[owner === null ? '-' : shorten(owner, OWNER_CHARACTERS), operation],
    ...[String(requests), String(denied)],
  ]);
  return formatTable([['OWNER', 'OPERATION', 'REQUESTS', 'DENIED'], ...lines]);
}

function formatNone(kind: string, { from, to }: DayRange): string {
  return `No requests${kind} from ${from} to ${to} (UTC).`;
}

function sum(rows: readonly Usage[], of: keyof Counts = 'requests'): number {
  return rows.reduce((total, row) => total + row[of], 0);
}

function findLastDay(rows: readonly Usage[]): string | null {
  const days = rows.map(({ day }) => day).sort();
  return days.at(-1) ?? null;
}

export function shortenId(id: string): string {
  return id.slice(0, SHORT_ID_CHARACTERS);
}

/** Shortens a text to a number of columns; every character counts as one. */
export function shorten(text: string, columns: number): string {
  const characters = [...text];
  return characters.length <= columns ? text : `${characters.slice(0, columns - 1).join('')}…`;
}

/**
 * Rows of cells as lines of aligned columns. Control characters are replaced, because anybody who may write to the
 * database may have put them there.
 */
export function formatTable(cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map((cell) => maskControls(cell)));
  const columns = rows[0]?.keys() ?? [];
  const widths = Array.from(columns, (column) =>
    rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0),
  );
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  return lines.map((line) => line.trimEnd()).join('\n');
}

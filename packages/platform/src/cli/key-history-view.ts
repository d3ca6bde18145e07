import type { KeyChange } from '../keys/history.js';
import { formatTable, shorten, shortenId } from './usage-tables.js';

/** Longer values are in --json. */
const VALUE_COLUMNS = 32;

/** Changes for people, one line each. */
export function formatHistory(changes: readonly KeyChange[]): string {
  if (changes.length === 0) return 'No changes on record.';
  return formatTable([
    ['TIME (UTC)', 'ID', 'NAME', 'ROLE', 'APPLICATION', 'CHANGE', 'FROM', 'TO'],
    ...changes.map((change) => [
      `${change.changedAt.toISOString().slice(0, 19)}Z`,
      shortenId(change.id),
      change.name === null ? '-' : shorten(change.name, 24),
      formatRole(change),
      change.applicationName || '-',
      ...formatChange(change),
    ]),
  ]);
}

/** Both roles, if one used the rights of another. */
function formatRole({ sessionRole, activeRole }: KeyChange): string {
  return sessionRole === activeRole ? sessionRole : `${sessionRole} as ${activeRole}`;
}

function formatChange({ column, oldValue, newValue }: KeyChange): string[] {
  if (column !== null) return [column, ...[oldValue, newValue].map(formatValue)];
  return newValue === null
    ? ['deleted', formatValue(oldValue), '-']
    : ['created', '-', formatValue(newValue)];
}

function formatValue(value: string | null): string {
  return value === null ? '-' : shorten(value, VALUE_COLUMNS);
}

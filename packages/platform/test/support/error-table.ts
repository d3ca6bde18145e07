import { definition } from '#operations-under-test';
import { createErrorTable, type ErrorDefinition } from '../../src/errors/error-table.js';

/** The errors of the store under test, by their codes */
export const errorTable: Readonly<Record<string, ErrorDefinition>> = Object.fromEntries(
  createErrorTable(definition),
);

/** What the table says of a code. */
export function errorOf(code: string): ErrorDefinition {
  const error = errorTable[code];
  if (error === undefined) throw new Error(`There is no error ${code}`);
  return error;
}

/** Rows of cells as lines of aligned columns; the first row has the headings. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const columns = rows[0]?.keys() ?? [];
  const widths = Array.from(columns, (column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

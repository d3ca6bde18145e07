import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface Table {
  readonly headings: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

/** Prints rows under headings: the first column to the left, the others to the right. */
export function printTable({ headings, rows }: Table): void {
  const cells = [headings, ...rows].map((row) => row.map((cell) => cell.toLocaleString('en')));
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  for (const row of cells) {
    const padded = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
    );
    process.stdout.write(`${padded.join('  ')}\n`);
  }
  process.stdout.write('\n');
}

export function toMarkdown({ headings, rows }: Table): string {
  const toLine = (cells: Table['rows'][number]) =>
    `| ${cells.map((cell) => cell.toLocaleString('en')).join(' | ')} |`;
  const isNumeric = (column: number) =>
    rows.some((row) => !Number.isNaN(Number.parseFloat(`${row[column]}`)));
  const rule = headings.map((_, column) => (isNumeric(column) ? '---:' : '---'));
  return [toLine(headings), toLine(rule), ...rows.map(toLine)].join('\n');
}

/** Replaces a table in a document of this repository, which is between comments with its name. */
export function writeTable(document: string, name: string, table: Table): void {
  const path = fileURLToPath(new URL(`../${document}`, import.meta.url));
  const [start, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
  const [before, rest] = readFileSync(path, 'utf8').split(start);
  const after = rest?.split(end)[1];
  if (after === undefined) throw new Error(`${document} has no place for ${name}`);
  writeFileSync(path, `${before}${start}\n\n${toMarkdown(table)}\n\n${end}${after}`);
}

export function median(numbers: readonly number[]): number {
  return quantile(numbers, 0.5);
}

/** Interpolates between neighbours. NaN for no numbers. */
export function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const index = (sorted.length - 1) * share;
  const below = sorted[Math.floor(index)] ?? Number.NaN;
  const above = sorted[Math.ceil(index)] ?? Number.NaN;
  return below + (above - below) * (index % 1);
}

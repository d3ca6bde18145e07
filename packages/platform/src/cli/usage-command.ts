import { z } from 'zod';
import type { Operation } from '../operations/list-operations.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { maskControls } from '../process/terminal-text.js';
import {
  type Counts,
  type DayRange,
  lastDays,
  type Owned,
  type OwnerUsage,
  SHOWN_DAYS,
  type Usage,
  type UsageStore,
} from '../usage/store.js';
import * as parse from './arguments.js';
import type { KeyTools } from './key-command.js';
import type { Printed, Streamed } from './key-view.js';
import {
  formatKeyUsage,
  formatOwnerUsage,
  formatUsage,
  summariseKeys,
  summariseUsage,
} from './usage-tables.js';

interface Named {
  readonly id: string;
  readonly name: string;
  readonly owner: string | null;
}

const CSV_COLUMNS = ['id', 'name', 'owner', 'day', 'operation', 'requests', 'denied', 'deprecated'] as const;
const CSV_TITLES = `${CSV_COLUMNS.join(',')}\n`;
const OWNER_COLUMNS = ['owner', 'operation', 'requests', 'denied'] as const;

export const USAGE_INPUT = z
  .strictObject({
    id: parse.id.optional().describe('one key, by operation and day; without it, all keys, by requests'),
    from: parse.day
      .optional()
      .describe(`the first day (UTC), such as 2026-01-01 (default: ${SHOWN_DAYS - 1} days before the last)`),
    to: parse.day.optional().describe('the last day (UTC), included (default: today)'),
    by: z
      .enum(['requests', 'denied', 'owner'] satisfies (keyof Counts | 'owner')[])
      .meta({ value: '<what>' })
      .optional()
      .describe(
        'put the keys with the most requests or denied first (default: requests; with --csv, on each day), or sum by owner and operation',
      ),
    deprecated: parse.flag(
      'only the keys that call deprecated operations; with --csv, only these operations',
    ),
    owner: parse.owner.describe(
      'only what the keys of this owner called on the days on which they were theirs',
    ),
    csv: parse.forTerminals(
      parse.flag(`print ${CSV_COLUMNS.join(',')}: a line for each day and operation, the newest day first`),
    ),
  })
  .refine(({ id, deprecated, owner }) => id === undefined || !(deprecated || owner !== undefined), {
    error: '{deprecated} and {owner} are for several keys: leave out the {id}',
  })
  .refine(({ id, by }) => id === undefined || by === undefined, {
    error: '{by} is for all keys: leave out the {id}',
  })
  .refine(({ by, deprecated }) => by !== 'owner' || !deprecated, {
    error: '{by} owner is the sum of all operations: leave out {deprecated}',
  })
  .refine(({ from, to }) => from === undefined || from <= toRange({ to }, Date.now()).to, {
    error: '{from} is after {to}, or after today',
  });

export type UsageOptions = Omit<z.output<typeof USAGE_INPUT>, 'id'>;

/** SHOWN_DAYS, unless the options say otherwise. */
function toRange(
  { from, to }: { from?: string | undefined; to?: string | undefined },
  now: number,
): DayRange {
  const range = lastDays(to === undefined ? now : Date.parse(to));
  return { ...range, ...(from === undefined ? {} : { from }) };
}

/** The usage of one key. */
export async function printUsage(
  store: UsageStore,
  options: UsageOptions,
  operations: readonly Operation[],
  { id, name, owner }: Named,
): Promise<Printed> {
  const range = toRange(options, Date.now());
  const rows = await store.read(id, range);
  const summary = summariseUsage(rows, operations);
  if (options.csv) {
    const lines = formatCsv([{ id, name, owner, usage: summary.usage }]);
    return { json: undefined, text: `${CSV_TITLES}${lines}`.trimEnd() };
  }
  return { json: { id, name, ...summary }, text: formatUsage(rows, operations, range) };
}

/** The usage of all keys, or of those of an owner. */
export async function printUsageOfKeys(
  { usage: store }: Pick<KeyTools, 'usage'>,
  options: UsageOptions,
  operations: readonly Operation[],
): Promise<Printed | Streamed> {
  const range = toRange(options, Date.now());
  const { deprecated } = options;
  const owned = options.owner === undefined ? undefined : await findOwned(store, options.owner);
  if (options.by === 'owner') return printOwners(await store.readOwners(range, owned), options, range);
  const { by } = options;
  if (options.csv) return { parts: readCsv(store, range, owned, { by, deprecated }, operations) };
  const all = summariseKeys(await store.readKeys(range, owned), operations, by);
  const chosen = all.filter(({ lastDeprecatedDay }) => !deprecated || lastDeprecatedDay !== null);
  const kind = deprecated ? ' of deprecated operations' : '';
  return { json: chosen.map(({ usage: _, ...key }) => key), text: formatKeyUsage(chosen, kind, range) };
}

/** The lines of invoices: what the keys of each owner called, however many keys there are. */
function printOwners(
  rows: readonly OwnerUsage[],
  { csv }: UsageOptions,
  range: DayRange,
): Printed | Streamed {
  if (csv) return { parts: toOwnerLines(rows) };
  // Only one of the two is printed, and a month of all customers is long.
  return {
    json: rows,
    get text() {
      return formatOwnerUsage(rows, range);
    },
  };
}

async function* toOwnerLines(rows: readonly OwnerUsage[]): AsyncIterable<string> {
  yield `${OWNER_COLUMNS.join(',')}\n`;
  for (const row of rows)
    yield `${OWNER_COLUMNS.map((column) => quote(String(row[column] ?? ''))).join(',')}\n`;
}

/** Reads a day at a time, because a year may take more memory than there is, and longer than a statement may. */
async function* readCsv(
  store: UsageStore,
  range: DayRange,
  owned: Owned | undefined,
  { by, deprecated }: { by: keyof Counts | undefined; deprecated: boolean | undefined },
  operations: readonly Operation[],
): AsyncIterable<string> {
  yield CSV_TITLES;
  for (const day of await store.findDays(range, owned)) {
    const keys = summariseKeys(await store.readKeysOnDay(day, owned), operations, by);
    yield formatCsv(
      keys.map(({ usage, ...key }) => ({
        ...key,
        usage: usage.filter((row) => row.deprecated || !deprecated),
      })),
    );
  }
}

/** @throws OperatorError if no key was ever the owner's, because an empty table for a misspelt name would pass for no usage */
async function findOwned(store: UsageStore, owner: string): Promise<Owned> {
  const owned = await store.findOwned(owner);
  if (owned.ids.length > 0) return owned;
  const advice = '"keys list" shows all keys and their owners.';
  throw new OperatorError(`The owner ${JSON.stringify(owner)} has no keys: ${advice}`, { exitCode: 3 });
}

interface CsvKey extends Named {
  readonly usage: readonly (Usage & { readonly deprecated: boolean })[];
}

/** RFC 4180, with the line ends of Unix. */
function formatCsv(keys: readonly CsvKey[]): string {
  const lines = keys.flatMap(({ id, name, owner, usage }) =>
    usage.map((row) => {
      const cells = { ...row, id, name, owner: owner ?? '' };
      return `${CSV_COLUMNS.map((column) => quote(String(cells[column]))).join(',')}\n`;
    }),
  );
  return lines.join('');
}

/**
 * The place before what a spreadsheet takes for the beginning of a formula (OWASP, CSV injection). In many countries a
 * semicolon separates cells. Quotes at the beginning of a cell do not belong to its text.
 */
const FORMULA = /(?<=^|;)(?="*[=+\-@\t\r\n＝＋－＠])/g;

/** A spreadsheet must not run a name as a formula: a single quote before it marks it as text. */
function quote(cell: string): string {
  const text = maskControls(cell.replace(FORMULA, "'"));
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

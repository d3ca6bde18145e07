import { createBatchLoader } from '@animal-store/batch-loader';
import type { Database } from '../connections/client.js';
import { DatabaseOutage } from '../connections/outage.js';
import { OPERATION_TIMEOUT_MS, TimeoutError } from '../timing/timeouts.js';
import { BATCHES, isolateRejections, isTakenId } from './batches.js';
import { givenSql } from './insert-statements.js';
import type { TableSql } from './table.js';

/**
 * A call that waits for a row gives up by then, so that nothing is stored once its caller has been told to try again. A call
 * that shares a statement may be stored shortly after its 503, as a create may: the 503 tells its caller to look, or to repeat it with its key.
 */
const STORED_WITHIN_MS = OPERATION_TIMEOUT_MS - 100;
/** Statements that change rows take turns by this name, so that locked tables leave connections for creates in others. */
const CHANGES = 'changes';

/** Why nothing was stored. `busy`: the row is locked. `again`: the row has changed since the statement began. */
export type Postponed = 'busy' | 'again';

/** What the text of a statement is made of. */
export interface StatementParts {
  /** For FROM: the calls as a table `given`, with their positions as `row_position` */
  readonly given: string;
  /** How the statement locks rows: `FOR UPDATE`, with `SKIP LOCKED` where calls share it */
  readonly lock: string;
}

/** A statement that locks a row for each of its calls, and decides by that row. */
export interface RowStatement<Call, Result, Outcome> {
  readonly name: string;
  /** The SQL types of the members of a call. An enum of the schema has an underscore in its name */
  readonly given: Readonly<Record<string, string>>;
  /** The text. Its result has a row for each call, in the order of `row_position`. */
  text(parts: StatementParts): string;
  toOutcome(result: Result): Outcome | Postponed;
  /** Calls for which this is the same are never in one statement: the second finds what the first has stored. */
  toRow?(call: Call): number;
  /** The table whose inserts the statement takes turns with. Default: all statements that only change rows */
  readonly turns?: string;
}

/** What such a statement needs of the database */
export type RowDatabase = Pick<Database, 'writes' | 'queryWaiting' | 'inSchema'>;

/**
 * Runs a statement that locks a row for each of its calls. Calls that arrive while others are being stored share a
 * statement, which stores as many as possible in one commit. It skips locked rows. A call for such a row then waits alone,
 * on a connection that may wait, so that a locked row delays only calls for that row.
 *
 * @param table whose ids the statement may draw
 */
export function createRowStatement<Call extends object, Result extends object, Outcome>(
  { writes, queryWaiting, inSchema }: RowDatabase,
  table: TableSql,
  { name, given: types, text, toOutcome, toRow, turns = CHANGES }: RowStatement<Call, Result, Outcome>,
): (call: Call) => Promise<Outcome> {
  const columns = Object.entries(types).map(([member, type]) => ({ field: `"${member}"`, type }));
  const given = givenSql(columns, inSchema);
  const shared = { table: turns, name, text: text({ given, lock: 'FOR UPDATE SKIP LOCKED' }) };
  const waiting = { name: `${name}-waiting`, text: text({ given, lock: 'FOR UPDATE' }) };
  writes.register({ ...shared, emptyValues: ['[]'], isOnlyPlanned: true, takesTurn: turns !== CHANGES });
  const runTogether = async (calls: readonly Call[]) =>
    (await writes.query<Result>(shared, [JSON.stringify(calls)])).map(toOutcome);
  const run = isolateRejections(table, toRow ? runDistinct(runTogether, toRow) : runTogether);
  const loader = createBatchLoader<Call, Outcome | Postponed>(run, BATCHES);
  const runAlone = async (call: Call, readLeftMs: () => number) => {
    const read = ([row]: unknown[]) => toOutcome(row as Result);
    const isFinal = (rows: unknown[]) => read(rows) !== 'again';
    const rows = queryWaiting<Result>(waiting, [JSON.stringify([call])], readLeftMs, isFinal);
    return rows.then(read, (error: unknown) => {
      throw isTakenId(table.name, error) ? new DatabaseOutage(error) : error;
    });
  };
  return async (call) => {
    const endsAt = performance.now() + STORED_WITHIN_MS;
    const readLeftMs = () => endsAt - performance.now();
    while (readLeftMs() > 0) {
      let outcome = await loader.load(call);
      if (outcome === 'busy') outcome = await runAlone(call, readLeftMs);
      if (outcome !== 'busy' && outcome !== 'again') return outcome;
    }
    throw new TimeoutError(`${name}: the row was not free within ${STORED_WITHIN_MS} ms`);
  };
}

/** Runs the first call for each row, and the others after it. */
function runDistinct<Call, Result>(
  run: (calls: readonly Call[]) => Promise<Result[]>,
  toRow: (call: Call) => number,
) {
  return async (calls: readonly Call[]): Promise<(Result | 'again')[]> => {
    const first = new Map<number, Call>();
    for (const call of calls) if (!first.has(toRow(call))) first.set(toRow(call), call);
    const results = await run([...first.values()]);
    const byCall = new Map([...first.values()].map((call, index) => [call, results[index] as Result]));
    return calls.map((call) => (byCall.has(call) ? (byCall.get(call) as Result) : 'again'));
  };
}

import pg from 'pg';
import type { Connections } from '../../packages/platform/src/connections/connections.js';
import { readCode } from '../../packages/platform/src/connections/outage.js';
import { IDENTITY } from '../../src/definition/identity.js';

/** How many rows there are of each combination, so that several calls find an unchanged row. */
const COPIES = 3;
/** The SQLSTATEs of what constraints and triggers refuse */
const REFUSED = /^(?:23...|P0001)$/;

type Store = Pick<Connections, 'pool' | 'schema' | 'inSchema'>;

interface Column {
  readonly table: string;
  readonly name: string;
  /** The values of its enum */
  readonly values: readonly string[] | null;
  /** Another table of the store that the column refers to */
  readonly parent: string | null;
}

interface Table {
  readonly name: string;
  readonly columns: readonly Column[];
}

/** The chosen values of a row, and of the rows that it refers to, by table and column */
type Choice = ReadonlyMap<Column, string>;

/** All columns that may be inserted. */
const COLUMNS = `
  SELECT tables.relname AS "table", attname AS name,
    (SELECT array_agg(enumlabel::text ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = atttypid) AS values,
    (
      SELECT parents.relname FROM pg_constraint JOIN pg_class AS parents ON parents.oid = confrelid
      WHERE contype = 'f' AND conrelid = tables.oid AND conkey = ARRAY[attnum] AND confrelid <> conrelid
        AND parents.relname = ANY ($2)
    ) AS parent
  FROM pg_class AS tables JOIN pg_attribute ON attrelid = tables.oid
  WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND tables.relname = ANY ($2)
    AND attnum > 0 AND NOT attisdropped AND attidentity = '' AND attgenerated = ''
  ORDER BY tables.relname, attnum`;

/**
 * Adds rows to the tables of the store: one for every combination of written enum values, with each row that they refer to,
 * as far as the database accepts it, because SQL may make each. Otherwise a row is a copy of the first row of its table.
 *
 * @param texts all texts in responses of this version, among them the values that it writes
 */
export async function fill(store: Store, texts: ReadonlySet<string>): Promise<void> {
  const names = Object.keys(IDENTITY.grants);
  const { rows } = await store.pool.query<Column>(COLUMNS, [store.schema, names]);
  const columns = rows.map((column) => keepWritten(column, texts));
  const tables = new Map(
    names.map((name) => [name, { name, columns: columns.filter(({ table }) => table === name) }]),
  );
  for (const table of tables.values()) {
    for (const choice of listChoices(table, tables)) {
      for (let n = 0; n < COPIES; n += 1) await insert(store, table, tables, choice);
    }
  }
}

/** Every combination of values of a table's enums and of those of the tables that it refers to. */
function listChoices({ columns }: Table, tables: ReadonlyMap<string, Table>): Choice[] {
  let choices: Choice[] = [new Map()];
  for (const column of columns) {
    const parent = column.parent === null ? undefined : tables.get(column.parent);
    const own = column.values?.map((value) => new Map([[column, value]])) ?? [new Map()];
    const all: readonly Choice[] = parent === undefined ? own : listChoices(parent, tables);
    choices = choices.flatMap((choice) => all.map((each) => new Map([...choice, ...each])));
  }
  return choices;
}

/** Inserts a row and new rows that it refers to. Resolves with its id; undefined if the database refuses it. */
async function insert(
  store: Store,
  table: Table,
  tables: ReadonlyMap<string, Table>,
  choice: Choice,
): Promise<string | undefined> {
  const values = new Map<Column, string>();
  for (const column of table.columns) {
    const parent = column.parent === null ? undefined : tables.get(column.parent);
    const value = parent === undefined ? choice.get(column) : await insert(store, parent, tables, choice);
    if (value !== undefined) values.set(column, value);
    else if (parent !== undefined) return undefined;
  }
  const columns = table.columns.map(({ name }) => pg.escapeIdentifier(name)).join(', ');
  const name = store.inSchema(table.name);
  const copied = table.columns.map((column) => {
    const value = values.get(column);
    return value === undefined ? pg.escapeIdentifier(column.name) : pg.escapeLiteral(value);
  });
  const sql = `INSERT INTO ${name} (${columns}) SELECT ${copied.join(', ')} FROM ${name} ORDER BY id LIMIT 1 RETURNING id`;
  try {
    return (await store.pool.query<{ id: string }>(sql)).rows[0]?.id;
  } catch (error) {
    if (REFUSED.test(readCode(error) ?? '')) return undefined;
    throw error;
  }
}

/** Keeps the enum values that are written, because no node meets a value that nothing writes yet. */
function keepWritten(column: Column, texts: ReadonlySet<string>): Column {
  const { table, name, values } = column;
  if (values === null) return column;
  const others = values.filter((value) => !texts.has(value));
  if (others.length > 0)
    process.stderr.write(`Nothing writes these values of ${table}.${name} yet: ${others.join(', ')}\n`);
  return { ...column, values: values.filter((value) => texts.has(value)) };
}

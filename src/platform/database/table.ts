/** Enums are named after their table and column, such as `pet_status`. The underscore tells them from other types. */
type EnumName = `${string}_${string}`;

/** The SQL types whose JSON is such a value. A row lacks no value: what is not known is null, never left out. */
type SqlType<Value> = [Value] extends [number]
  ? 'bigint' | 'integer'
  : [Value] extends [boolean]
    ? 'boolean'
    : [Value] extends [string]
      ? string extends Value
        ? 'text'
        : EnumName
      : never;

type SqlTypes<Row> = { readonly [Field in keyof Row]-?: SqlType<Exclude<Row[Field], null>> };

/** Rows by column: a row that has `id` is made of the first value of each array, and so on. Null for no rows. */
export type JsonColumns = readonly (readonly unknown[] | null)[];

/** What statements are made of. */
export interface TableSql {
  readonly name: string;
  /** The columns that an insert sets, with their types: all but `id`, which PostgreSQL assigns */
  readonly insertColumns: Readonly<Record<string, string>>;
  /** SQL: one row, as JSON */
  readonly json: string;
  /** SQL: several rows as JSON by column. Field by field, a page would cost both sides more than the rest of it. */
  readonly jsonColumns: string;
}

/** What reads and writes the rows of a table. A constraint keeps integers within what a JavaScript number holds exactly. */
export interface Table<Row, NewRow> extends TableSql {
  /** The values of `insertColumns`, in their order */
  toValues(row: NewRow): readonly unknown[];
  toRows(columns: JsonColumns): Row[];
}

/**
 * Describes a table whose key is an identity column named `id`. The column of a field is named like it, in snake case.
 *
 * @param types the SQL type of each field
 */
export function table<Row extends NewRow & { readonly id: number }, NewRow extends Omit<Row, 'id'>>(
  name: string,
  types: SqlTypes<Row>,
): Table<Row, NewRow> {
  const fields = Object.keys(types) as (keyof Row & string)[];
  const columns = fields.map(toColumn);
  const given = fields.filter((field) => field !== 'id') as string[] as (keyof Row & keyof NewRow & string)[];
  const pairs = fields.map((field, index) => `'${field}', ${columns[index]}`);
  return {
    name,
    insertColumns: Object.fromEntries(given.map((field) => [toColumn(field), types[field]])),
    toValues: (row) => given.map((field) => row[field]),
    json: `pg_catalog.json_build_object(${pairs.join(', ')})`,
    jsonColumns: `pg_catalog.json_build_array(${columns.map((column) => `pg_catalog.array_agg(${column})`).join(', ')})`,
    toRows: (values) =>
      (values[0] ?? []).map((_, index) => {
        const row: Record<string, unknown> = {};
        for (let column = 0; column < fields.length; column += 1) {
          row[fields[column] as string] = values[column]?.[index];
        }
        return row as Row;
      }),
  };
}

/** In quotes, because `order` may be a field. */
function toColumn(field: string): string {
  return `"${field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}"`;
}

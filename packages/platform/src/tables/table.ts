import type { InSchema } from '../connections/schema-name.js';

/** Enums are named after their table and column, such as `pet_status`. The underscore distinguishes them from other types. */
type EnumName = `${string}_${string}`;

type IntegerType = 'bigint' | 'integer';
/**
 * `date` is written 2026-01-31, `timestamptz` 2026-01-31T09:30:00.000Z. A `decimal` is text, such as 12.50, because a
 * JSON number is rounded to a binary fraction, and sums of money would not add up.
 */
type TextType = 'text' | 'date' | 'timestamptz' | 'decimal';

/** The SQL types whose JSON is such a value. Rows have every member: an unknown value is null, never left out. */
type SqlType<Value> = [Value] extends [number]
  ? IntegerType
  : [Value] extends [boolean]
    ? 'boolean'
    : [Value] extends [string]
      ? string extends Value
        ? TextType
        : EnumName
      : [Value] extends [readonly (infer Element)[]]
        ? ListType<Element>
        : never;

/** Lists without nulls in them. A list itself may be null. */
type ListType<Element> = [Element] extends [number]
  ? `${IntegerType}[]`
  : [Element] extends [string]
    ? string extends Element
      ? 'text[]'
      : `${EnumName}[]`
    : never;

type SqlTypes<Row> = { readonly [Field in keyof Row]-?: SqlType<Exclude<Row[Field], null>> };

/** Rows by column: the first row is made of the first value of each array, and so on. Null if there are no rows. */
export type JsonColumns = readonly (readonly unknown[] | null)[];

/** A column that is inserted, the field that it is named after (both in quotes), and their type */
export interface InsertColumn {
  readonly column: string;
  readonly field: string;
  readonly type: string;
}

/** The parts that statements are made of. */
export interface TableSql {
  readonly name: string;
  /** The columns that an insert sets: all but `id`, which PostgreSQL assigns */
  readonly insertColumns: readonly InsertColumn[];
  /** SQL: one row, as JSON */
  readonly json: string;
  /** SQL: several rows as JSON by column. Field by field, JSON would cost both sides more than the rest of a page. */
  readonly jsonColumns: string;
}

/**
 * A table, for reads and inserts. A constraint in the database bounds its integers to those that a JavaScript number
 * holds exactly.
 */
export interface Table<Row, NewRow> extends TableSql {
  /** The SQL type of each field */
  readonly types: SqlTypes<Row>;
  /** The column of a field, in quotes: the field's name in snake case */
  toColumn(field: keyof Row & string): string;
  toRows(columns: JsonColumns): Row[];
  /** Rows as an INSERT takes them: one parameter, of which the INSERT reads the fields of `insertColumns` */
  toJson(rows: readonly NewRow[]): string;
}

/**
 * Describes a table whose key is an identity column named `id`. The column of a field is the field's name in snake case.
 *
 * @param types the SQL type of each field
 */
export function table<Row extends NewRow & { readonly id: number }, NewRow extends Omit<Row, 'id'>>(
  name: string,
  types: SqlTypes<Row>,
): Table<Row, NewRow> {
  const fields = Object.keys(types) as (keyof Row & string)[];
  const pairs = fields.map((field) => `'${field}', ${jsonSql(toColumn(field), types[field])}`);
  const arrays = fields.map((field) => {
    // Lists of different lengths cannot be one array of PostgreSQL.
    const aggregate = isList(types[field]) ? 'json_agg' : 'array_agg';
    return `${aggregate}(${jsonSql(toColumn(field), types[field])})`;
  });
  return {
    name,
    types,
    toColumn,
    insertColumns: fields
      .filter((field) => field !== 'id')
      .map((field) => ({ column: toColumn(field), field: `"${field}"`, type: types[field] })),
    json: `json_build_object(${pairs.join(', ')})`,
    jsonColumns: `json_build_array(${arrays.join(', ')})`,
    toJson: (rows) => JSON.stringify(rows),
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

const isList = (type: string) => type.endsWith('[]');

/** A type in SQL: one of PostgreSQL's own, an enum of the schema, or a list of either */
export function typeSql(type: string, inSchema: InSchema): string {
  if (isList(type)) return `${typeSql(type.slice(0, -2), inSchema)}[]`;
  return type.includes('_') ? inSchema(type) : type;
}

/**
 * The JSON of a column, independent of DateStyle and TimeZone; PostgreSQL itself writes dates in JSON as ISO 8601.
 * `infinity`, which to_char cannot write, must not become null.
 */
function jsonSql(column: string, type: string): string {
  if (type === 'decimal') return `${column}::text`;
  if (type !== 'timestamptz') return column;
  const utc = `timezone('UTC', ${column})`;
  return `coalesce(to_char(${utc}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), ${column}::text)`;
}

/** In quotes, because `order` may be a field. */
function toColumn(field: string): string {
  return `"${field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}"`;
}

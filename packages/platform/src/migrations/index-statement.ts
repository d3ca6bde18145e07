/** A statement that creates or drops an index concurrently. PostgreSQL lets it stand only alone in a migration. */
export interface IndexStatement {
  readonly kind: 'create' | 'drop';
  /** As SQL writes it: in quotes or not, with its schema or without */
  readonly name: string;
}

/** Comments, names in quotes, words, and other characters one by one. */
const TOKEN = /--.*|\/\*[\s\S]*?\*\/|"(?:[^"]|"")+"|[\w$\u{80}-\u{10ffff}]+|\S/gu;
const COMMENT = /^(?:--|\/\*)/;

const NAME = '(?:"(?:[^"]|"")+"|[^\\s"]+)';
const CREATE = new RegExp(
  `^CREATE (?:UNIQUE )?INDEX CONCURRENTLY (?:IF NOT EXISTS )?(?<index>${NAME}) ON (?:ONLY )?(?:(?<schema>${NAME}) \\. )?${NAME}`,
  'i',
);
const DROP = new RegExp(
  `^DROP INDEX CONCURRENTLY (?:IF EXISTS )?(?:(?<schema>${NAME}) \\. )?(?<index>${NAME})`,
  'i',
);

/** Undefined for every other script, and for an index to which PostgreSQL gives a name. */
export function readIndexStatement(script: string): IndexStatement | undefined {
  const tokens = script.match(TOKEN) ?? [];
  const statement = tokens.filter((token) => !COMMENT.test(token)).join(' ');
  const created = CREATE.exec(statement)?.groups;
  if (created !== undefined) return { kind: 'create', name: nameOf(created) };
  const dropped = DROP.exec(statement)?.groups;
  return dropped && { kind: 'drop', name: nameOf(dropped) };
}

/** An index is in the schema of its table. */
function nameOf({ schema, index = '' }: Readonly<Record<string, string | undefined>>): string {
  return schema === undefined ? index : `${schema}.${index}`;
}

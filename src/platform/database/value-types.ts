import pg from 'pg';

const { builtins } = pg.types;

/** PostgreSQL's dates in the only format and time zone that every part of this process reads correctly. */
const UTC_FORMS: ReadonlyMap<number, RegExp> = new Map([
  [builtins.DATE, /^\d{4,}-\d\d-\d\d$/],
  [builtins.TIMESTAMP, /^\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?$/],
  [builtins.TIMESTAMPTZ, /^\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\+00$/],
]);

/** A value that PostgreSQL has and this process cannot read, which must not be taken for none. */
class UnreadableValue extends Error {
  override readonly name = 'UnreadableValue';
}

/**
 * Parsers of values, for the option `types` of pg. pg reads a date in another DateStyle than ISO as null, and Prisma's
 * adapter ignores its offset; with these, such a date is an error.
 *
 * @param of the parsers of everything that can be read
 * @throws UnreadableValue from the parsers of dates
 */
export function withReadableDates(of: pg.CustomTypesConfig): pg.CustomTypesConfig {
  const getTypeParser = of.getTypeParser as (oid: number, format?: string) => (value: string) => unknown;
  return {
    getTypeParser: ((oid: number, format?: string) => {
      const parse = getTypeParser(oid, format);
      const form = format === 'binary' ? undefined : UTC_FORMS.get(oid);
      if (form === undefined) return parse;
      return (text: string) => {
        if (form.test(text)) return parse(text);
        throw new UnreadableValue(
          `a date in the database reads ${text}: DateStyle or TimeZone of the session is not that of the service`,
        );
      };
    }) as typeof pg.types.getTypeParser,
  };
}

/** Lets a connection check dates also in queries that bring parsers of their own, as those of Prisma's adapter do. */
export function checkDates(client: pg.ClientBase): void {
  const query = client.query.bind(client) as (...args: readonly unknown[]) => unknown;
  const checked = (config: unknown, ...rest: readonly unknown[]) => {
    const own = (config as { readonly types?: pg.CustomTypesConfig } | null)?.types;
    return query(
      own === undefined ? config : { ...(config as object), types: withReadableDates(own) },
      ...rest,
    );
  };
  Object.assign(client, { query: checked });
}

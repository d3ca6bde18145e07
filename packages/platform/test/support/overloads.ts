import { execute } from '@animal-store/platform/testing';

/** All that the trigger functions of the schema say */
const SOURCE = `
  SELECT string_agg(prosrc, ' ') FROM pg_proc
  WHERE pronamespace = 'public'::regnamespace AND prorettype = 'trigger'::regtype`;
/** Whatever in it may be a call of PostgreSQL's: the words and signs that are names of a function or an operator. */
const FUNCTIONS = `
  SELECT proname AS name, bool_or(pronargs > 1) AS "takesTwo" FROM pg_proc
  WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ '^\\w+$' AND (${SOURCE}) ~ ('\\m' || proname || '\\M')
  GROUP BY proname`;
const OPERATORS = `
  SELECT DISTINCT oprname AS name FROM pg_operator
  WHERE oprnamespace = 'pg_catalog'::regnamespace AND position(oprname IN (${SOURCE})) > 0`;
/** What may be an argument: the types that are named there, and those of rows and columns. */
const TYPES = `
  SELECT DISTINCT format_type(pg_type.oid, NULL) AS name FROM pg_type
  WHERE (typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND (${SOURCE}) ~ ('\\m' || typname || '\\M'))
    OR pg_type.oid IN (SELECT atttypid FROM pg_attribute WHERE attrelid = 'api_keys'::regclass AND attnum > 0)
    OR typrelid IN (SELECT tgrelid FROM pg_trigger WHERE NOT tgisinternal)
    OR pg_type.oid IN ('oid'::regtype, 'regtype'::regtype, 'jsonb'::regtype)`;

const BODY = `LANGUAGE plpgsql AS $f$ BEGIN RAISE 'hijacked'; END $f$`;

/**
 * Lets a role add to the schema whatever might be called by its trigger functions in place of PostgreSQL's functions and
 * operators: some with the same names for all of the types that they use. Whoever calls one gets the error `hijacked`.
 */
export async function plantOverloads(ownerUrl: string, planterUrl: string): Promise<void> {
  const read = <Row extends { name: string }>(sql: string) => execute<Row>(ownerUrl, sql);
  const functions = await read<{ name: string; takesTwo: boolean }>(FUNCTIONS);
  const operators = await read(OPERATORS);
  const types = (await read(TYPES)).map(({ name }) => name);
  const pairs = types.flatMap((left) => types.map((right) => `${left}, ${right}`));
  const create = (name: string, parameters: string) =>
    `CREATE FUNCTION public.${name}(${parameters}) RETURNS boolean ${BODY}`;
  const statements = [
    ...functions.flatMap(({ name, takesTwo }) =>
      ['smallint DEFAULT 0', ...types, ...(takesTwo ? pairs : [])].map((each) => create(name, each)),
    ),
    ...[...types, ...pairs].map((each) => create('planted', each)),
    ...operators.flatMap(({ name }) => [
      ...types.map((right) => `CREATE OPERATOR public.${name} (FUNCTION = planted, RIGHTARG = ${right})`),
      ...pairs.map((pair) => {
        const [left, right] = pair.split(', ');
        return `CREATE OPERATOR public.${name} (FUNCTION = planted, LEFTARG = ${left}, RIGHTARG = ${right})`;
      }),
    ]),
  ];
  const array = `{${statements.map((text) => JSON.stringify(text)).join()}}`;
  // Some cannot be added, such as an operator of one side that PostgreSQL reserves.
  await execute(
    planterUrl,
    `DO $do$ DECLARE statement text; BEGIN
       FOREACH statement IN ARRAY $s$${array}$s$::text[] LOOP
         BEGIN EXECUTE statement; EXCEPTION WHEN syntax_error OR invalid_function_definition THEN NULL; END;
       END LOOP; END $do$`,
  );
}

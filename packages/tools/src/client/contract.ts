import { isDeepStrictEqual } from 'node:util';
import { OperatorError } from '@animal-store/platform/development';
import { describe, printComment } from './comments.js';
import { ERROR_CODE, SCOPE, toTypeName } from './names.js';
import { type ClientOperation, type Service, toInputSchema } from './operations.js';
import { createPrinter, type Printer } from './printer.js';
import { type Document, refName, type Schema, type Schemas } from './schema.js';

/** How the document's paragraph on the next page begins, which is in `Link` over REST only */
const NEXT_PAGE = 'While more follow, ';
const NEXT_PAGE_HERE =
  `${NEXT_PAGE}\`nextCursor(page)\` is the \`cursor\` of the next page; \`pages\` and \`items\` read on by themselves. Plain ` +
  'tRPC has it in the header `X-Next-Cursor`.';
const STABLE = 'stable';
const PROCEDURES = `
type Query<Input, Output> = TRPCQueryProcedure<{ input: Input; output: Output; meta: unknown }>;
type Mutation<Input, Output> = TRPCMutationProcedure<{ input: Input; output: Output; meta: unknown }>;
`.trimStart();

/**
 * The declarations of what a client knows of a service: the types of its operations with the document's descriptions, bounds and
 * defaults as comments, which editors show.
 *
 * These are types rather than interfaces, because tRPC's clients keep the name and comments of a type that is plain JSON,
 * but write an interface out.
 *
 * @throws OperatorError when two types would have the same name
 */
export function printContract(
  document: Document,
  operations: readonly ClientOperation[],
  { errors, scopes }: { readonly errors: Service['errors']; readonly scopes: readonly string[] },
): string {
  const named = nameSchemas(document, errors, scopes);
  const print = createPrinter(named);
  const shapes = new Map(operations.map(({ inputName, shape }) => [inputName, shape]));
  const types = Object.entries(named)
    .filter(([, { type }]) => type !== 'array')
    .map(([name, schema]) => ({ name: toTypeName(name), schema, shape: shapes.get(name) }));
  const inputs = operations
    .filter(({ input, isBody }) => input !== undefined && !isBody)
    .map((operation) => ({
      name: operation.inputName,
      schema: toInputSchema(operation, named[refName(operation.body)]),
      shape: operation.shape,
    }));
  const all = [...types, ...inputs];
  const twice = all.find(({ name }, index) => all.findIndex((each) => each.name === name) < index);
  if (twice !== undefined)
    throw new OperatorError(
      `The client would have two types named ${twice.name}: give one of their schemas another id in its .meta().`,
    );
  const procedures = operations.map((operation) => printProcedure(operation, operations, named, print));
  return [
    "import type { TRPCMutationProcedure, TRPCQueryProcedure } from '@trpc/server';\n",
    ...all.map(({ name, schema, shape }) => print.alias(name, schema, shape)),
    PROCEDURES,
    `/** The operations of the service as tRPC's procedures */\nexport type Operations = {\n${procedures.join('')}};\n`,
    'export {};\n',
  ].join('\n');
}

/** The schemas by name. Lists of names to which a later version may add have the names of this version. */
function nameSchemas(document: Document, errors: Service['errors'], scopes: readonly string[]): Schemas {
  const { Scope, Error: body } = document.components.schemas;
  const isOurs = Scope?.anyOf?.some((each) => isDeepStrictEqual(each.enum, scopes)) === true;
  const text = JSON.stringify(document.components.schemas);
  const schemas: Schemas = JSON.parse(
    isOurs ? text.replaceAll('"#/components/schemas/Scope"', `"#/${SCOPE}"`) : text,
  );
  const description = (isOurs && Scope?.description) || 'What an API key can allow';
  const scope: Schema = { type: 'string', enum: scopes, description };
  const { code, ...members } = body?.properties ?? {};
  const codes = [...errors.keys()];
  return {
    ...Object.fromEntries(
      Object.entries(schemas).map(([name, schema]) =>
        isOurs && name === 'Scope' ? [SCOPE, scope] : [name, schema],
      ),
    ),
    ...(isOurs ? {} : { [SCOPE]: scope }),
    Error: { ...body, properties: { code: { ...code, $ref: `#/${ERROR_CODE}` }, ...members } },
    [ERROR_CODE]: { type: 'string', enum: codes, description: describeCodes(errors) },
  };
}

function describeCodes(errors: Service['errors']): string {
  const items = [...errors].map(
    ([code, { status, description }]) => `- \`${code}\` (${status}): ${description}`,
  );
  return ['Names what went wrong:', ...items].join('\n\n');
}

function printProcedure(
  operation: ClientOperation,
  operations: readonly ClientOperation[],
  named: Schemas,
  print: Printer,
): string {
  const { name, method, described, input, inputName, isBody, mayLackInput } = operation;
  const [success] = Object.entries(described.responses).flatMap(([status, response]) =>
    status.startsWith('2') ? [response] : [],
  );
  const schema = success?.content?.['application/json'].schema;
  const kind = method === 'GET' ? 'Query' : 'Mutation';
  const takes = input === undefined ? 'void' : isBody ? toTypeName(inputName) : inputName;
  const returns = schema === undefined ? 'undefined' : print.print(schema, '  ');
  const list = named[refName(schema)];
  const result = list?.type === 'array' ? describe(list) : success?.description;
  const comment = printComment('  ', describeOperation(operation), [
    ['returns', result],
    ...(described['x-stability'] === STABLE ? [] : [[described['x-stability']] as const]),
    ...describeDeprecation(operation, operations),
  ]);
  const optional = input !== undefined && mayLackInput ? ' | undefined' : '';
  return `${comment}  ${name}: ${kind}<${takes}${optional}, ${returns}>;\n`;
}

/** The document's own paragraphs on the deprecation and on the next page name a path and a header, as callers of REST need. */
function describeOperation({ described }: ClientOperation): string[] {
  const { summary, description, parameters = [] } = described;
  const paragraphs = description
    .split('\n\n')
    .filter((text) => !text.startsWith('Deprecated: '))
    .map((text) => (text.startsWith(NEXT_PAGE) ? NEXT_PAGE_HERE : text));
  const key = parameters.find((parameter) => parameter.name === 'Idempotency-Key');
  return [
    ...[summary, ...paragraphs].filter((text, index, all) => all.indexOf(text) === index),
    ...(key === undefined
      ? []
      : [
          `\`${key.name}\`: ${key.description} \`createClient\` sends one with each call; to choose it, pass ` +
            '`{ context: { idempotencyKey } }` as the second argument.',
        ]),
  ];
}

function describeDeprecation(
  { deprecation, described, method }: ClientOperation,
  operations: readonly ClientOperation[],
): (readonly [string, string])[] {
  if (deprecation === undefined) return [];
  const { 'x-deprecated-since': since, 'x-sunset': removal } = described;
  const successor = operations.find(
    (other) => other.method === method && other.path === deprecation.successor,
  );
  const name = successor?.name ?? `${method} ${deprecation.successor}`;
  return [['deprecated', `Since ${since}; removed on ${removal}. Use \`${name}\` instead.`]];
}

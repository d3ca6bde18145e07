import { createPrinter, describe, printComment, quote, refName } from './type-printer.js';

/** How the document's paragraph on the next page begins, which is in `Link` over REST only */
const NEXT_PAGE = 'While more follow, ';
const NEXT_PAGE_HERE =
  `${NEXT_PAGE}\`nextCursor(page)\` is the \`cursor\` of the next page; \`pages\` and \`items\` read on by themselves. Plain ` +
  'tRPC has it in the header `X-Next-Cursor`.';
const HEADER = '/* Written by `npm run docs:update` from the OpenAPI document and the router. */\n';
const STABLE = 'stable';
const PROCEDURES = `
type Query<Input, Output> = TRPCQueryProcedure<{ input: Input; output: Output; meta: unknown }>;
type Mutation<Input, Output> = TRPCMutationProcedure<{ input: Input; output: Output; meta: unknown }>;
`.trimStart();

/**
 * What the typed client knows of the service: the types of its operations with the document's descriptions, bounds and
 * defaults as comments, which editors show, and a few constants.
 *
 * These are types rather than interfaces, because tRPC's clients keep the name and comments of a type that is plain JSON,
 * but write an interface out.
 *
 * @param {object} document the OpenAPI document
 * @param {object} contract the operations as listOperations lists them, the table of errors, and the constants of
 *   contract/protocol.ts
 * @returns {Record<string, string>} the texts by path
 */
export function deriveClient(document, contract) {
  const { operations, errorTable, TRPC_PREFIX, MAX_BATCH_SIZE, MAX_PAGE_SIZE, NEXT_CURSOR_FIELD } = contract;
  const described = listDescribed(document, operations);
  const idempotent = described.filter(({ idempotent }) => idempotent).map(({ name }) => name);
  const constants = {
    TRPC_PREFIX: quote(TRPC_PREFIX),
    MAX_BATCH_SIZE,
    MAX_PAGE_SIZE,
    NEXT_CURSOR_FIELD: quote(NEXT_CURSOR_FIELD),
    'IDEMPOTENT_MUTATIONS: readonly string[]': `[${idempotent.map(quote).join(', ')}]`,
  };
  const lines = Object.entries(constants).map(([name, value]) => `export const ${name} = ${value};\n`);
  return {
    'packages/client/src/contract.ts': printContract(document, described, errorTable),
    'packages/client/src/protocol.ts': `${HEADER}\n${lines.join('')}`,
  };
}

/** The router's operations, each with the document's text, and the name and the members of its input. */
function listDescribed({ paths }, operations) {
  return operations.map((operation) => {
    const described = paths[operation.path][operation.method.toLowerCase()];
    const { requestBody, parameters = [] } = described;
    const own = parameters.filter((parameter) => parameter.in === 'path' || parameter.in === 'query');
    const body = requestBody?.content['application/json'].schema;
    const isBody = body !== undefined && own.length === 0;
    const inputName = isBody ? refName(body) : `${capitalize(operation.name)}Input`;
    return { ...operation, described, own, body, isBody, inputName, shape: readShape(operation.input) };
  });
}

function readShape(schema) {
  if (schema === undefined || schema.shape) return schema?.shape ?? {};
  return readShape(schema.unwrap());
}

function printContract({ components: { schemas } }, operations, errorTable) {
  const shapes = new Map(operations.map(({ inputName, shape }) => [inputName, shape]));
  const { code, ...members } = schemas.Error.properties;
  const known = code.anyOf.find((alternative) => alternative.enum !== undefined);
  const codeReference = { $ref: '#/ErrorCode', description: code.description };
  const named = {
    ...schemas,
    Error: { ...schemas.Error, properties: { code: codeReference, ...members } },
    // The codes that the client knows; the document leaves room for others.
    ErrorCode: { ...known, description: describeCodes(known.enum, errorTable) },
  };
  const print = createPrinter(named);

  const types = Object.entries(named)
    // An array is written out where it is used: Pet[] says more than Pets.
    .filter(([, { type }]) => type !== 'array')
    .map(([name, schema]) => print.alias(name, schema, shapes.get(name)));
  const inputs = operations
    .filter(({ input, isBody }) => input !== undefined && !isBody)
    .map(({ name, inputName, own, body, shape }) =>
      print.alias(inputName, toInputSchema(name, own, named[refName(body)]), shape),
    );
  const procedures = operations.map((operation) => printProcedure(operation, operations, named, print));
  return [
    `${HEADER}import type { TRPCMutationProcedure, TRPCQueryProcedure } from '@trpc/server';\n`,
    ...types,
    ...inputs,
    PROCEDURES,
    `/** The operations of the service as tRPC's procedures */\nexport type Operations = {\n${procedures.join('')}};\n`,
  ].join('\n');
}

/** An input that is more than a body: one object with the parameters and the members of the body. */
function toInputSchema(name, parameters, body) {
  const members = parameters.map(({ name, description, schema }) => [name, { ...schema, description }]);
  const required = parameters.filter((parameter) => parameter.required).map((parameter) => parameter.name);
  return {
    type: 'object',
    description: `The input of ${name}`,
    properties: { ...Object.fromEntries(members), ...body?.properties },
    required: [...required, ...(body?.required ?? [])],
  };
}

function printProcedure(operation, operations, named, print) {
  const { name, method, described, input, inputName } = operation;
  const [success] = Object.entries(described.responses).flatMap(([status, response]) =>
    status.startsWith('2') ? [response] : [],
  );
  const schema = success.content?.['application/json'].schema;
  const kind = method === 'GET' ? 'Query' : 'Mutation';
  const optional = input?.safeParse(undefined).success ? ' | undefined' : '';
  const takes = input === undefined ? 'void' : inputName + optional;
  const returns = schema === undefined ? 'undefined' : print.type(schema, '  ');
  const list = named[refName(schema)];
  const result = list?.type === 'array' ? describe(list) : success.description;
  const comment = printComment('  ', describeOperation(operation), [
    ['returns', result],
    ...(described['x-stability'] === STABLE ? [] : [[described['x-stability']]]),
    ...describeDeprecation(operation, operations),
  ]);
  return `${comment}  ${name}: ${kind}<${takes}, ${returns}>;\n`;
}

/** The document's own paragraphs on the deprecation and on the next page name a path and a header, as callers of REST need. */
function describeOperation({ described }) {
  const { summary, description, parameters = [] } = described;
  const paragraphs = description
    .split('\n\n')
    .filter((text) => !text.startsWith('Deprecated: '))
    .map((text) => (text.startsWith(NEXT_PAGE) ? NEXT_PAGE_HERE : text));
  const key = parameters.find((parameter) => parameter.name === 'Idempotency-Key');
  return [
    summary,
    ...paragraphs,
    ...(key === undefined
      ? []
      : [
          `\`${key.name}\`: ${key.description} \`createClient\` sends one with each call; to choose it, pass ` +
            '`{ context: { idempotencyKey } }` as the second argument.',
        ]),
  ];
}

function describeDeprecation({ deprecation, described, method }, operations) {
  if (deprecation === undefined) return [];
  const { 'x-deprecated-since': since, 'x-sunset': removal } = described;
  const successor = operations.find(
    (other) => other.method === method && other.path === deprecation.successor,
  );
  return [['deprecated', `Since ${since}; removed on ${removal}. Use \`${successor.name}\` instead.`]];
}

function describeCodes(codes, errorTable) {
  const items = codes.map(
    (code) => `- \`${code}\` (${errorTable[code].status}): ${errorTable[code].description}`,
  );
  return ['Names what went wrong:', ...items].join('\n\n');
}

function capitalize(name) {
  return name.slice(0, 1).toUpperCase() + name.slice(1);
}

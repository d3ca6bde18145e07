import { describeRange } from '../src/docs/page/presentation.js';

const MAX_LINE_LENGTH = 110;
const HEADER = '/* Written by `npm run docs:update` from the OpenAPI document and the router. */\n';
/** Where the name in the document would hide one of JavaScript's own. */
const NAMES = { Error: 'ErrorBody' };
const STABLE = 'stable';
const PROCEDURES = `
type Query<Input, Output> = TRPCQueryProcedure<{ input: Input; output: Output; meta: unknown }>;
type Mutation<Input, Output> = TRPCMutationProcedure<{ input: Input; output: Output; meta: unknown }>;
`.trimStart();

/**
 * What the typed client knows of the service: the types of its operations with the document's descriptions, bounds and
 * defaults as comments, which editors show, and a few constants.
 *
 * These are types rather than interfaces, because tRPC's clients take a type that is plain JSON as it is, with its name
 * and comments, and write an interface out.
 *
 * @param {object} document the OpenAPI document
 * @param {object} contract the operations as listOperations lists them, the table of errors, and the constants of
 *   contract/protocol.ts
 * @returns {Record<string, string>} the texts by path
 */
export function deriveClient(document, contract) {
  const { operations, errorTable, TRPC_PREFIX, MAX_BATCH_SIZE, MAX_PAGE_SIZE } = contract;
  const described = listDescribed(document, operations);
  const idempotent = described.filter(({ idempotent }) => idempotent).map(({ name }) => name);
  const constants = {
    TRPC_PREFIX: quote(TRPC_PREFIX),
    MAX_BATCH_SIZE,
    MAX_PAGE_SIZE,
    'IDEMPOTENT_MUTATIONS: readonly string[]': `[${idempotent.map(quote).join(', ')}]`,
  };
  const lines = Object.entries(constants).map(([name, value]) => `export const ${name} = ${value};\n`);
  return {
    'packages/client/src/contract.ts': printContract(document, described, errorTable),
    'packages/client/src/protocol.ts': `${HEADER}\n${lines.join('')}`,
  };
}

/** The router's operations, each with what the document says of it, the name of its input, and the members of that. */
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
  const codeReference = { $ref: '#/ErrorCode', description: code.description };
  const named = {
    ...schemas,
    Error: { ...schemas.Error, properties: { code: codeReference, ...members } },
    ErrorCode: { ...code, description: describeCodes(code.enum, errorTable) },
  };
  const print = createPrinter(named);

  const types = Object.entries(named)
    // An array is written out where it is used: Pet[] says more than Pets.
    .filter(([, { type }]) => type !== 'array')
    .map(([name, schema]) => print.alias(NAMES[name] ?? name, schema, shapes.get(name)));
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
  const returns = schema === undefined ? 'void' : print.type(schema, '  ');
  const list = named[refName(schema)];
  const result = list?.type === 'array' ? describe(list) : success.description;
  const comment = printComment('  ', describeOperation(operation), [
    ['returns', result],
    ...(described['x-stability'] === STABLE ? [] : [[described['x-stability']]]),
    ...describeDeprecation(operation, operations),
  ]);
  return `${comment}  ${name}: ${kind}<${takes}, ${returns}>;\n`;
}

/** The document's own paragraph on the deprecation names the successor by its path, which callers of REST need. */
function describeOperation({ described }) {
  const { summary, description, parameters = [] } = described;
  const paragraphs = description.split('\n\n').filter((text) => !text.startsWith('Deprecated: '));
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

/** Prints JSON Schemas as types. */
function createPrinter(named) {
  /** @param shape the zod schemas of an input's members, which tell whether one that may be left out may be undefined */
  function alias(name, schema, shape) {
    const comment = printComment('', [describe(schema)]);
    return `${comment}export type ${name} =${breakUnion(type(schema, '', shape), `export type ${name} =`, '')};\n`;
  }

  function type(schema, indent, shape) {
    if (schema.$ref !== undefined) {
      const name = refName(schema);
      return named[name].type === 'array' ? type(named[name], indent) : (NAMES[name] ?? name);
    }
    if (schema.enum !== undefined) return schema.enum.map(quote).join(' | ');
    if (schema.const !== undefined) return quote(schema.const);
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (alternatives !== undefined) return alternatives.map((each) => type(each, indent)).join(' | ');
    switch (schema.type) {
      case 'array': {
        const item = type(schema.items, indent);
        return item.includes(' | ') ? `(${item})[]` : `${item}[]`;
      }
      case 'object':
        return object(schema, indent, shape);
      case 'integer':
        return 'number';
      case 'string':
      case 'number':
      case 'boolean':
      case 'null':
        return schema.type;
      default:
        throw new TypeError(`The client has no type for the schema ${JSON.stringify(schema)}`);
    }
  }

  function object({ properties = {}, required = [] }, indent, shape = {}) {
    const inner = `${indent}  `;
    const members = Object.entries(properties).map(([name, schema]) => {
      const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name);
      const isOptional = !required.includes(name);
      const mayBeUndefined = isOptional && shape[name]?.safeParse(undefined).success;
      const printed = type(schema, inner) + (mayBeUndefined ? ' | undefined' : '');
      const start = `${inner}${key}${isOptional ? '?' : ''}:`;
      return `${describeMember(schema, inner)}${start}${breakUnion(printed, start, inner)};\n`;
    });
    return `{\n${members.join('')}${indent}}`;
  }

  /** A member without a description of its own has that of its type. */
  function describeMember(schema, indent) {
    const { description = named[refName(schema)]?.description, default: value, deprecated } = schema;
    return printComment(
      indent,
      [describe({ ...schema, description })],
      [...(value === undefined ? [] : [['default', quote(value)]]), ...(deprecated ? [['deprecated']] : [])],
    );
  }

  return { alias, type };
}

/** With its bounds in words, as on the reference page, unless the description has them already. */
function describe(schema) {
  const { description, type, minLength = 0, maxLength } = schema;
  if (type === 'array') return joinSentences(description, describeItems(schema));
  if (type === 'integer') return joinSentences(description, describeRange(schema));
  if (type !== 'string' || maxLength === undefined) return description;
  const range = `${minLength} to ${maxLength}`;
  return description?.includes(range) ? description : joinSentences(description, `${range} characters.`);
}

function describeItems({ maxItems }) {
  return maxItems === undefined ? undefined : `At most ${maxItems} items.`;
}

function joinSentences(...sentences) {
  return sentences
    .filter(Boolean)
    .map((text, index, { length }) => (index < length - 1 ? `${text.replace(/\.$/, '')}.` : text))
    .join(' ');
}

/** A union that does not fit on its line has each member on one of its own, as Biome formats it. */
function breakUnion(type, start, indent) {
  if (type.includes('\n') || start.length + ` ${type};`.length <= MAX_LINE_LENGTH) return ` ${type}`;
  return type
    .split(' | ')
    .map((member) => `\n${indent}  | ${member}`)
    .join('');
}

/** @param tags pairs of a name and a text */
function printComment(indent, paragraphs, tags = []) {
  const width = MAX_LINE_LENGTH - indent.length - ' * '.length;
  const blocks = paragraphs.filter(Boolean).flatMap((text) => text.split('\n\n'));
  const tagLines = tags.map(([name, text]) => [`@${name}`, text].filter(Boolean).join(' '));
  const texts = tagLines.length === 0 ? blocks : [...blocks, tagLines.join('\n')];
  const [only] = texts;
  const escaped = (text) => text.replaceAll('*/', '*\\/');
  if (texts.length === 0) return '';
  const single = `${indent}/** ${escaped(only)} */`;
  if (texts.length === 1 && single.length <= MAX_LINE_LENGTH && !only.includes('\n')) return `${single}\n`;
  const lines = texts.flatMap((text, index) => [
    // The items of a list follow each other.
    ...(index === 0 || (text.startsWith('- ') && index > 1) ? [] : ['']),
    ...text.split('\n').flatMap((line) => wrap(escaped(line), width)),
  ]);
  const body = lines.map((line) => `${indent} *${line && ' '}${line}\n`).join('');
  return `${indent}/**\n${body}${indent} */\n`;
}

function wrap(text, width) {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line !== '' && line.length + 1 + word.length > width)
      lines.push(text.startsWith('- ') ? `  ${word}` : word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}

function refName(schema) {
  return schema?.$ref?.split('/').at(-1);
}

function quote(value) {
  return typeof value === 'string'
    ? `'${JSON.stringify(value).slice(1, -1).replaceAll("'", "\\'")}'`
    : JSON.stringify(value);
}

function capitalize(name) {
  return name.slice(0, 1).toUpperCase() + name.slice(1);
}

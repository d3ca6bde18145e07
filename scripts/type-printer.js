import { describeRange } from '../packages/reference-page/src/presentation.js';

const MAX_LINE_LENGTH = 110;
/** Replacements for names of the document that would hide JavaScript's own. */
const NAMES = { Error: 'ErrorBody' };

/**
 * Prints JSON Schemas as types of TypeScript, with their descriptions as comments.
 *
 * @param {object} named the schemas that others refer to, by name
 */
export function createPrinter(named) {
  /** @param shape the zod schemas of an input's members, which tell whether one that may be left out may be undefined */
  function alias(name, schema, shape) {
    const start = `export type ${NAMES[name] ?? name} =`;
    return `${printComment('', [describe(schema)])}${start}${breakUnion(type(schema, '', shape), start, '')};\n`;
  }

  function type(schema, indent, shape) {
    if (schema.$ref !== undefined) {
      const name = refName(schema);
      return named[name].type === 'array' ? type(named[name], indent) : (NAMES[name] ?? name);
    }
    if (schema.enum !== undefined) return schema.enum.map(quote).join(' | ');
    if (schema.const !== undefined) return quote(schema.const);
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (alternatives !== undefined) {
      const values = alternatives.find((each) => each.enum !== undefined);
      // An open list of names, such as error codes, has the names of this version.
      const typed = values !== undefined && alternatives.some(isAnyText) ? [values] : alternatives;
      return typed.map((each) => type(each, indent)).join(' | ');
    }
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

function isAnyText({ type, enum: values }) {
  return type === 'string' && values === undefined;
}

/** The description with its bounds in words, as on the reference page, unless it has them already. */
export function describe(schema) {
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

/** A union that does not fit on a line has each member on its own line, as Biome formats it. */
function breakUnion(type, start, indent) {
  if (type.includes('\n') || start.length + ` ${type};`.length <= MAX_LINE_LENGTH) return ` ${type}`;
  return type
    .split(' | ')
    .map((member) => `\n${indent}  | ${member}`)
    .join('');
}

/** @param tags pairs of a name and a text */
export function printComment(indent, paragraphs, tags = []) {
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

export function refName(schema) {
  return schema?.$ref?.split('/').at(-1);
}

export function quote(value) {
  return typeof value === 'string'
    ? `'${JSON.stringify(value).slice(1, -1).replaceAll("'", "\\'")}'`
    : JSON.stringify(value);
}

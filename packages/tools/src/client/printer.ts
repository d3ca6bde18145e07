import { describe, MAX_LINE_LENGTH, printComment } from './comments.js';
import { toTypeName } from './names.js';
import { quote, refName, type Schema, type Schemas } from './schema.js';

/** The members of an input, as zod knows them */
export type Shape = Readonly<Record<string, { safeParse(value: undefined): { readonly success: boolean } }>>;

export type Printer = ReturnType<typeof createPrinter>;

/**
 * Prints JSON Schemas as types of TypeScript, with their descriptions as comments.
 *
 * @param named the schemas that others refer to, by name
 */
export function createPrinter(named: Schemas) {
  /** @param shape tells which members that may be left out may also be undefined */
  function alias(name: string, schema: Schema, shape?: Shape): string {
    const start = `export type ${name} =`;
    return `${printComment('', [describe(schema)])}${start}${breakUnion(print(schema, '', shape), start, '')};\n`;
  }

  function print(schema: Schema, indent: string, shape?: Shape): string {
    if (schema.$ref !== undefined) {
      const target = named[refName(schema)];
      // An array is written out where it is used: Pet[] says more than Pets.
      return target?.type === 'array' ? print(target, indent) : toTypeName(refName(schema));
    }
    if (schema.enum !== undefined) return schema.enum.map(quote).join(' | ');
    if ('const' in schema) return quote(schema.const);
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (alternatives !== undefined) return union(alternatives, indent);
    if (schema.allOf !== undefined) return schema.allOf.map((each) => group(each, indent)).join(' & ');
    if (schema.not !== undefined) return 'never';
    if (Array.isArray(schema.type))
      return union(
        schema.type.map((type) => ({ ...schema, type })),
        indent,
      );
    switch (schema.type) {
      case 'array':
        return array(schema, indent);
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
        return 'unknown';
    }
  }

  /** Beside any text, TypeScript forgets the texts that are listed, unless the former is written as here. */
  function union(alternatives: readonly Schema[], indent: string): string {
    const hasValues = alternatives.some((each) => each.enum !== undefined || 'const' in each);
    const printed = alternatives.map((each) => print(each, indent));
    return [...new Set(printed)]
      .map((each) => (hasValues && each === 'string' ? '(string & {})' : each))
      .join(' | ');
  }

  /** A type that something follows */
  function group(schema: Schema, indent: string): string {
    const printed = print(schema, indent);
    return printed.includes(' | ') || printed.includes(' & ') ? `(${printed})` : printed;
  }

  function array({ items = {}, prefixItems }: Schema, indent: string): string {
    const rest = typeof items === 'boolean' ? 'unknown' : group(items, indent);
    if (prefixItems === undefined) return `${rest}[]`;
    const members = prefixItems.map((each) => print(each, indent));
    return `[${[...members, ...(items === false ? [] : [`...${rest}[]`])].join(', ')}]`;
  }

  function object(schema: Schema, indent: string, shape: Shape = {}): string {
    const inner = `${indent}  `;
    const { required = [], additionalProperties: others = false } = schema;
    const keys = named[refName(schema.propertyNames)] ?? schema.propertyNames;
    const value = typeof others === 'boolean' ? {} : others;
    const properties = keys?.enum
      ? Object.fromEntries(keys.enum.map((name) => [String(name), value]))
      : schema.properties;
    const members = Object.entries(properties ?? {}).map(([name, member]) => {
      const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name);
      const type = print(member, inner);
      // tRPC's clients make such a member optional, and would no longer know the type by its name.
      const isOptional = !required.includes(name) || type === 'unknown';
      const mayBeUndefined = isOptional && shape[name]?.safeParse(undefined).success;
      const printed = type + (mayBeUndefined && type !== 'unknown' ? ' | undefined' : '');
      const start = `${inner}${key}${isOptional ? '?' : ''}:`;
      return `${describeMember(member, inner)}${start}${breakUnion(printed, start, inner)};\n`;
    });
    if (others !== false && keys?.enum === undefined)
      members.push(`${inner}[name: string]: ${members.length > 0 ? 'unknown' : print(value, inner)};\n`);
    return `{\n${members.join('')}${indent}}`;
  }

  /** A member without a description of its own has that of its type. */
  function describeMember(schema: Schema, indent: string): string {
    const description = schema.description ?? named[refName(schema)]?.description;
    const text = describe(description === undefined ? schema : { ...schema, description });
    return printComment(
      indent,
      [text],
      [
        ...(schema.default === undefined ? [] : [['default', quote(schema.default)] as const]),
        ...(schema.deprecated ? [['deprecated'] as const] : []),
      ],
    );
  }

  return { alias, print };
}

/** A union that does not fit on a line has each member on its own line. */
function breakUnion(type: string, start: string, indent: string): string {
  if (type.includes('\n') || start.length + ` ${type};`.length <= MAX_LINE_LENGTH) return ` ${type}`;
  return type
    .split(' | ')
    .map((member) => `\n${indent}  | ${member}`)
    .join('');
}

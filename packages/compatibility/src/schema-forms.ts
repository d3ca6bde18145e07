import type { Schema } from './document.js';
import { toOwnText } from './references.js';

/** Keywords for readers, and `default`, which is compared separately. */
const ANNOTATIONS = [
  ...['title', 'description', 'example', 'examples', 'externalDocs', '$comment', 'deprecated', 'default'],
  ...['xml', 'discriminator', 'readOnly', 'writeOnly', '$id', '$schema', '$anchor', '$defs', 'definitions'],
];
export const LOWER_BOUNDS = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
export const UPPER_BOUNDS = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];

export function isAnnotation(keyword: string): boolean {
  return ANNOTATIONS.includes(keyword) || keyword.startsWith('x-');
}

export function listTypes({ type }: Schema): readonly string[] | undefined {
  return typeof type === 'string' ? [type] : type;
}

export function isAllowedType(type: string, allowed: readonly string[]): boolean {
  return allowed.includes(type) || (type === 'integer' && allowed.includes('number'));
}

/**
 * One form for schemas that can be written in several: `const` as an enum, excluded bounds of OpenAPI 3.0 as those of
 * JSON Schema, the type that follows from other keywords, and no keyword that allows everything.
 */
export function simplify(schema: Schema): Schema {
  const form: Record<string, unknown> = { ...schema };
  if ('const' in form) {
    form.enum = [form.const];
    delete form.const;
  }
  for (const [excluded, bound] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (typeof form[excluded] !== 'boolean') continue;
    if (form[excluded] && form[bound] !== undefined) {
      form[excluded] = form[bound];
      delete form[bound];
    } else delete form[excluded];
  }
  for (const [keyword, value] of Object.entries(form)) if (isVoid(keyword, value)) delete form[keyword];
  const type = form.type ?? inferType(form);
  if (type !== undefined) form.type = Array.isArray(type) && type.length === 1 ? type[0] : type;
  return form;
}

/** Whether a keyword excludes no value. */
function isVoid(keyword: string, value: unknown): boolean {
  if (value === undefined) return true;
  if (['minLength', 'minItems', 'minProperties'].includes(keyword)) return value === 0;
  if (['uniqueItems', 'nullable'].includes(keyword)) return value === false;
  if (keyword === 'required') return !Array.isArray(value) || value.length === 0;
  if (keyword === 'additionalProperties' || keyword === 'items') return value === true || isEmpty(value);
  return false;
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** Many documents leave the type out where other keywords say it. */
function inferType(form: Readonly<Record<string, unknown>>): string | undefined {
  if (form.properties !== undefined || form.additionalProperties !== undefined) return 'object';
  if (form.items !== undefined) return 'array';
  const { enum: values } = form;
  const isText =
    Array.isArray(values) && values.length > 0 && values.every((each) => typeof each === 'string');
  return isText ? 'string' : undefined;
}

/** What a schema says of values of some types only. */
const KEYWORDS_OF: Readonly<Record<string, readonly string[]>> = {
  object: [
    ...['properties', 'required', 'additionalProperties', 'minProperties', 'maxProperties'],
    ...['patternProperties', 'propertyNames'],
  ],
  array: ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems'],
  string: ['minLength', 'maxLength', 'pattern'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
};

/** What a schema says of the values of one of its types. */
export function limitToType(schema: Schema, type: string): Schema {
  const values = schema.enum as unknown[] | undefined;
  const own = KEYWORDS_OF[type === 'integer' ? 'number' : type] ?? [];
  const foreign = Object.values(KEYWORDS_OF).flat();
  const members = Object.entries(schema).filter(
    ([keyword]) => own.includes(keyword) || !foreign.includes(keyword),
  );
  return {
    ...Object.fromEntries(members),
    type,
    ...(values && { enum: values.filter((each) => (each === null) === (type === 'null')) }),
  };
}

/**
 * The schema of the values that both allow. What one keyword cannot say stays in `allOf`, and is compared as it is written.
 * Merging that, too, would never end for schemas that contain themselves.
 */
export function intersect(first: Schema, second: Schema): Schema {
  const both: Record<string, unknown> = { ...first };
  const apart: object[] = [];
  for (const [keyword, value] of Object.entries(second)) {
    const own = first[keyword];
    if (own === undefined || isAnnotation(keyword)) both[keyword] = value;
    else if (keyword === 'properties') {
      const [joined, rest] = joinProperties(own as Properties, value as Properties);
      both[keyword] = joined;
      if (Object.keys(rest).length > 0) apart.push({ properties: rest });
    } else if (toOwnText(own) !== toOwnText(value)) {
      const joined = join(keyword, own, value);
      if (joined === undefined) apart.push({ [keyword]: value });
      else both[keyword] = joined;
    }
  }
  if (apart.length > 0) both.allOf = [...((both.allOf as object[] | undefined) ?? []), ...apart];
  return both;
}

/** Undefined if a keyword that both have cannot say what both say. */
function join(keyword: string, first: unknown, second: unknown): unknown {
  if (keyword === 'required') return [...new Set([...(first as string[]), ...(second as string[])])];
  if (keyword === 'enum') {
    const values = new Set((second as unknown[]).map((each) => JSON.stringify(each)));
    return (first as unknown[]).filter((each) => values.has(JSON.stringify(each)));
  }
  if (keyword === 'type') return joinTypes([first].flat() as string[], [second].flat() as string[]);
  if (LOWER_BOUNDS.includes(keyword)) return Math.max(first as number, second as number);
  if (UPPER_BOUNDS.includes(keyword)) return Math.min(first as number, second as number);
  return keyword === 'additionalProperties' && (first === false || second === false) ? false : undefined;
}

type Properties = Readonly<Record<string, Schema>>;

/** The members of both, and the members of the second that differ in the first. */
function joinProperties(first: Properties, second: Properties): [joined: Properties, rest: Properties] {
  const rest = Object.entries(second).filter(
    ([name, schema]) => Object.hasOwn(first, name) && toOwnText(first[name]) !== toOwnText(schema),
  );
  return [{ ...second, ...first }, Object.fromEntries(rest)];
}

function joinTypes(first: readonly string[], second: readonly string[]): string | string[] {
  const both = [
    ...first.filter((type) => isAllowedType(type, second)),
    ...second.filter((type) => !first.includes(type) && isAllowedType(type, first)),
  ];
  return both.length === 1 ? (both[0] as string) : both;
}

import { type Document, resolve, type Schema, toComparableText } from './document.js';
import type { RuleId } from './rules.js';

/** Whose values a schema describes. In the body of an `error`, the codes may grow. */
export type Direction = 'request' | 'response' | 'error';

/** What comparisons of schemas share within one operation. */
export interface SchemaComparison {
  readonly before: Document;
  readonly after: Document;
  readonly direction: Direction;
  readonly report: (rule: RuleId, text: string) => void;
  /** Pairs of references that were compared: they may recur, and may contain themselves. */
  readonly compared: Set<string>;
}

const LOWER_BOUNDS = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
const UPPER_BOUNDS = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];
const COMPARED_ELSEWHERE = ['properties', 'required', 'default'];
const ANNOTATIONS = ['title', 'description', 'example', 'examples', 'deprecated'];
/** Clients tolerate new members, and the length of a page follows from the request. */
const FREE_IN_RESPONSES = ['additionalProperties', 'maxProperties', 'maxItems'];
/** How the document says what a member of a body is when it is left out. */
const DEFAULT_IN_WORDS = /`([^`]*)` if left out/;

/** @param place what a report starts with; a reference replaces its last part by its own name */
export function compareSchemas(
  before: Schema,
  after: Schema,
  place: string,
  comparison: SchemaComparison,
): void {
  if (before.$ref !== undefined) {
    const pair = JSON.stringify([before, after]);
    if (comparison.compared.has(pair)) return;
    comparison.compared.add(pair);
  }
  const old = resolve(before, comparison.before);
  const now = resolve(after, comparison.after);
  const name = before.$ref?.split('/').at(-1);
  const here = name === undefined ? place : `${comparison.direction} ${name}`;
  compareValues(old, now, here, comparison);
  compareMembers(old, now, here, comparison);
  if (old.items !== undefined && now.items !== undefined) {
    compareSchemas(old.items, now.items, `${here}[]`, comparison);
  }
}

function compareValues(old: Schema, now: Schema, place: string, comparison: SchemaComparison): void {
  const { before, after, direction, report } = comparison;
  const isRequest = direction === 'request';
  if (!isRequest && isClosed(now) && !isClosed(old))
    report('responses-open', `${place} excludes other members`);
  if (direction === 'error' && place.endsWith('.code')) {
    compareCodes(old, now, place, comparison);
    return;
  }
  const rule = isRequest ? 'input-accepted' : 'output-expected';
  const isSame = (keyword: string) =>
    toComparableText(old[keyword], before) === toComparableText(now[keyword], after);
  for (const keyword of isRequest ? listExcesses(now, old) : listExcesses(old, now)) {
    if (isSame(keyword) || (!isRequest && FREE_IN_RESPONSES.includes(keyword))) continue;
    report(rule, `${place}: ${keyword} is ${toText(now[keyword])}, was ${toText(old[keyword])}`);
  }
  const [oldDefault, newDefault] = [readDefault(old), readDefault(now)];
  if (isRequest && toText(oldDefault) !== toText(newDefault)) {
    report('default-kept', `${place}: default is ${toText(newDefault)}, was ${toText(oldDefault)}`);
  }
}

function isClosed({ additionalProperties }: Schema): boolean {
  return additionalProperties === false;
}

/** The codes that a schema names, as an enum or as an alternative to any string, which leaves it open to others. */
function compareCodes(old: Schema, now: Schema, place: string, { report }: SchemaComparison): void {
  const [before, after] = [readCodes(old), readCodes(now)];
  if (before.isText && !after.isText) report('output-expected', `${place} is not always a string`);
  if (before.isOpen && !after.isOpen) report('responses-open', `${place} excludes other codes`);
  for (const code of listMissing(before.codes, after.codes))
    report('codes-kept', `${place} is no longer ${code}`);
}

function readCodes(schema: Schema) {
  const alternatives = (schema.anyOf ?? [schema]) as readonly Schema[];
  return {
    codes: alternatives.flatMap((each) => (each.enum ?? []) as readonly string[]),
    isOpen: alternatives.some((each) => each.enum === undefined),
    isText: alternatives.every(({ type }) => type === 'string'),
  };
}

/** The keywords by which `outer` excludes values that `inner` allows. One that is unknown here may. */
function listExcesses(outer: Schema, inner: Schema): string[] {
  return Object.keys(outer).filter((keyword) => {
    const [limit, value] = [outer[keyword], inner[keyword]];
    if ([...ANNOTATIONS, ...COMPARED_ELSEWHERE].includes(keyword) || keyword.startsWith('x-')) return false;
    if (keyword === 'type') return !listTypes(inner).every((type) => isAllowed(type, listTypes(outer)));
    if (value === undefined) return limit !== true || keyword === 'uniqueItems';
    if (keyword === 'enum') return listMissing(value, limit).length > 0;
    if (LOWER_BOUNDS.includes(keyword)) return (value as number) < (limit as number);
    if (UPPER_BOUNDS.includes(keyword)) return (value as number) > (limit as number);
    return keyword !== 'items';
  });
}

function listTypes({ type = 'any' }: Schema): readonly string[] {
  return typeof type === 'string' ? [type] : type;
}

function isAllowed(type: string, allowed: readonly string[]): boolean {
  return allowed.includes(type) || (type === 'integer' && allowed.includes('number'));
}

function compareMembers(
  { properties: old = {}, required: wasRequired = [] }: Schema,
  { properties: now = {}, required: isRequired = [] }: Schema,
  place: string,
  comparison: SchemaComparison,
): void {
  const { direction, report } = comparison;
  for (const [name, schema] of Object.entries(old)) {
    const member = now[name];
    const rule = direction === 'request' ? 'input-kept' : 'output-kept';
    if (member === undefined) report(rule, `${place}.${name} is gone`);
    else compareSchemas(schema, member, `${place}.${name}`, comparison);
  }
  if (direction === 'request') {
    for (const name of listMissing(isRequired, wasRequired)) {
      report('input-optional', `${place}.${name} is required`);
    }
    return;
  }
  for (const name of listMissing(wasRequired, isRequired)) {
    if (Object.hasOwn(now, name)) report('output-kept', `${place}.${name} is optional`);
  }
}

function readDefault({ default: value, description }: Schema): unknown {
  return value ?? DEFAULT_IN_WORDS.exec(String(description))?.[1];
}

function listMissing(values: unknown, among: unknown): string[] {
  const present = among as readonly unknown[] | undefined;
  return ((values ?? []) as string[]).filter((value) => !present?.includes(value));
}

function toText(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value);
}

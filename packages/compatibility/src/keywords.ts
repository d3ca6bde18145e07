import type { SchemaComparison } from './comparison.js';
import type { Schema } from './document.js';
import { isAllowedType, isAnnotation, LOWER_BOUNDS, listTypes, UPPER_BOUNDS } from './schema-forms.js';

/** The schemas of members are compared one by one. */
const COMPARED_ELSEWHERE = ['properties', 'required'];
/** Clients tolerate new members, and the length of a page follows from the request. */
const FREE_IN_RESPONSES = ['additionalProperties', 'maxProperties', 'maxItems'];
/** How a document names the value of a member of a body that is left out, if it has no `default`. */
const DEFAULT_IN_WORDS = /`([^`]*)` if left out/;

/** Compares what two schemas say of a value as a whole, but not what they say of its members. */
export function compareKeywords(old: Schema, now: Schema, place: string, comparison: SchemaComparison): void {
  const { direction, report, isSame } = comparison;
  const isRequest = direction === 'request';
  if (!isRequest && now.additionalProperties === false && old.additionalProperties !== false)
    report('responses-open', `${place} excludes other members`);
  const rule = isRequest ? 'input-accepted' : 'output-expected';
  for (const keyword of isRequest ? listExcesses(now, old) : listExcesses(old, now)) {
    if (isSame(old[keyword], now[keyword])) continue;
    if (!isRequest && FREE_IN_RESPONSES.includes(keyword)) continue;
    report(rule, `${place}: ${keyword} is ${toText(now[keyword])}, was ${toText(old[keyword])}`);
  }
}

/** Compares what leaving out a value of a request means. */
export function compareDefaults(old: Schema, now: Schema, place: string, comparison: SchemaComparison): void {
  const [before, after] = [readDefault(old), readDefault(now)].map(toText);
  if (comparison.direction === 'request' && before !== after) {
    comparison.report('default-kept', `${place}: default is ${after}, was ${before}`);
  }
}

/** The keywords by which `outer` excludes values that `inner` allows. A keyword that is unknown here may. */
function listExcesses(outer: Schema, inner: Schema): string[] {
  if (listTypes(inner)?.length === 0) return [];
  return Object.keys(outer).filter((keyword) => {
    if (isAnnotation(keyword) || COMPARED_ELSEWHERE.includes(keyword)) return false;
    const [limit, value] = [outer[keyword], inner[keyword]];
    if (keyword === 'type') {
      const [allowed, types] = [listTypes(outer) ?? [], listTypes(inner) ?? ['any']];
      return !types.every((type) => isAllowedType(type, allowed));
    }
    if (value === undefined) return true;
    if (keyword === 'enum') return listMissing(value, limit).length > 0;
    if (LOWER_BOUNDS.includes(keyword)) return (value as number) < (limit as number);
    if (UPPER_BOUNDS.includes(keyword)) return (value as number) > (limit as number);
    const isCompared = typeof limit === 'object' && typeof value === 'object';
    return !(isCompared && ['items', 'additionalProperties'].includes(keyword));
  });
}

function readDefault({ default: value, description }: Schema): unknown {
  return value ?? DEFAULT_IN_WORDS.exec(String(description))?.[1];
}

/** The values that only the first of two lists has. */
export function listMissing(values: unknown, among: unknown): string[] {
  const present = new Set(((among ?? []) as readonly unknown[]).map(toText));
  return ((values ?? []) as string[]).filter((value) => !present.has(toText(value)));
}

function toText(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value);
}

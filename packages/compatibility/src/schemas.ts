import { compareCodes, isOpenEnum, listValues } from './codes.js';
import { Pairs, type SchemaComparison } from './comparison.js';
import type { Schema } from './document.js';
import { compareDefaults, compareKeywords, listMissing } from './keywords.js';
import { nameOf } from './references.js';
import type { Alternative } from './schema-reader.js';

/** @param place what a report starts with; a reference replaces its last part by its own name */
export function compareSchemas(
  before: Schema | boolean | undefined,
  after: Schema | boolean | undefined,
  place: string,
  comparison: SchemaComparison,
): void {
  const [old, now] = [comparison.before.read(before), comparison.after.read(after)];
  if (comparison.compared.get(old, now)) return;
  comparison.compared.set(old, now, true);
  const name = nameOf(before);
  const here = name === undefined ? place : `${comparison.direction} ${name}`;
  compareDefaults(old, now, here, comparison);
  const olds = comparison.before.listAlternatives(old);
  const nows = comparison.after.listAlternatives(now);
  if (compareCodes(olds, nows, here, comparison)) return;
  const isClosing = isOpenEnum(olds) && !isOpenEnum(nows) && listValues(nows).length > 0;
  if (isClosing && comparison.direction !== 'request') {
    comparison.report('responses-open', `${here} excludes other values`);
  }
  if (olds.length > 1 || nows.length > 1) compareAlternatives(old, now, here, comparison);
  else compareForms(olds[0]?.schema ?? old, nows[0]?.schema ?? now, here, comparison);
}

function compareForms(old: Schema, now: Schema, place: string, comparison: SchemaComparison): void {
  compareKeywords(old, now, place, comparison);
  compareMembers(old, now, place, comparison);
  if (old.items !== undefined && now.items !== undefined) {
    compareSchemas(old.items, now.items, `${place}[]`, comparison);
  }
  const [others, othersNow] = [old.additionalProperties, now.additionalProperties];
  if (typeof others === 'object' && typeof othersNow === 'object') {
    compareSchemas(others as Schema, othersNow as Schema, `${place}.*`, comparison);
  }
}

function compareMembers(old: Schema, now: Schema, place: string, comparison: SchemaComparison): void {
  const { direction, report } = comparison;
  const isRequest = direction === 'request';
  const unused = isRequest ? 'readOnly' : 'writeOnly';
  const isUsed = (member: Schema | undefined, reader: SchemaComparison['before']) =>
    member !== undefined && reader.read(member)[unused] !== true;
  for (const [name, schema] of Object.entries(old.properties ?? {})) {
    if (!isUsed(schema, comparison.before)) continue;
    const member = now.properties?.[name];
    if (isUsed(member, comparison.after)) compareSchemas(schema, member, `${place}.${name}`, comparison);
    else report(isRequest ? 'input-kept' : 'output-kept', `${place}.${name} is gone`);
  }
  const [wasRequired, isRequired] = [old.required ?? [], now.required ?? []];
  for (const name of isRequest
    ? listMissing(isRequired, wasRequired)
    : listMissing(wasRequired, isRequired)) {
    const member = now.properties?.[name];
    if (isRequest && (member === undefined || isUsed(member, comparison.after))) {
      report('input-optional', `${place}.${name} is required`);
    } else if (!isRequest && isUsed(member, comparison.after)) {
      report('output-kept', `${place}.${name} is optional`);
    }
  }
}

/** Each old alternative of a request has to be accepted, and each new alternative of a response expected. */
function compareAlternatives(old: Schema, now: Schema, place: string, comparison: SchemaComparison): void {
  const isRequest = comparison.direction === 'request';
  const olds = comparison.before.listSingleTypes(old);
  const nows = comparison.after.listSingleTypes(now);
  const [given, allowed] = isRequest ? [olds, nows] : [nows, olds];
  for (const each of given) {
    const order = (other: Alternative) => (isRequest ? ([each, other] as const) : ([other, each] as const));
    const doesFit = (other: Alternative) => {
      const [first, second] = order(other);
      return fits(first.schema, second.schema, comparison);
    };
    if (allowed.some(doesFit)) continue;
    const counterpart = findCounterpart(each, given, allowed);
    if (counterpart !== undefined) {
      const [first, second] = order(counterpart);
      const here = each.name === undefined ? place : `${comparison.direction} ${each.name}`;
      compareSchemas(first.schema, second.schema, here, comparison);
    } else if (isRequest) comparison.report('input-accepted', `${place} can no longer be ${describe(each)}`);
    else comparison.report('output-expected', `${place} can be ${describe(each)}`);
  }
}

/** The other version of an alternative: the one of the same name, or at the same place among as many of the same type. */
function findCounterpart(
  alternative: Alternative,
  given: readonly Alternative[],
  allowed: readonly Alternative[],
): Alternative | undefined {
  const { name, schema } = alternative;
  const named = name === undefined ? undefined : allowed.find((each) => each.name === name);
  if (named !== undefined) return named;
  const isAlike = (each: Alternative) => String(each.schema.type) === String(schema.type);
  const [others, alike] = [given.filter(isAlike), allowed.filter(isAlike)];
  return others.length === alike.length ? alike[others.indexOf(alternative)] : undefined;
}

function describe({ name, schema: { type, enum: values } }: Alternative): string {
  return name ?? (values === undefined ? String(type ?? 'something else') : JSON.stringify(values));
}

/** Ends an attempt at its first violation. */
const MISFIT = Symbol('a violation');

/** Whether a comparison of the two has nothing to report. */
function fits(old: Schema, now: Schema, comparison: SchemaComparison): boolean {
  const { known, assumed } = comparison.attempts;
  const result = known.get(old, now);
  if (result !== undefined) return result;
  // True until the contrary is found, because schemas may contain themselves.
  known.set(old, now, true);
  const count = assumed.push([old, now]);
  const report = () => {
    throw MISFIT;
  };
  try {
    compareSchemas(old, now, '', { ...comparison, compared: new Pairs(), report });
    if (count === 1) assumed.length = 0;
    return true;
  } catch (error) {
    if (error !== MISFIT) throw error;
    // Pairs that were found to fit meanwhile may rest on this one.
    for (const pair of assumed.splice(count - 1)) if (known.get(...pair)) known.delete(...pair);
    known.set(old, now, false);
    return false;
  }
}

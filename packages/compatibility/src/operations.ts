import { listNoticeViolations, listRemovalViolations } from './deprecation.js';
import {
  type Document,
  type Located,
  locateOperations,
  type Operation,
  type Parameter,
  resolve,
  toComparableText,
} from './document.js';
import { compareContent, compareResponses } from './responses.js';
import type { RuleId, Violation } from './rules.js';
import { compareSchemas, type Direction, type SchemaComparison } from './schemas.js';

/** What changed in an operation, by its method and path. */
export interface Change {
  readonly operation: string;
  /** Absent when the change is compatible. */
  readonly violation?: Violation;
}

export interface Comparison {
  /** Violations in stable operations. */
  readonly breaking: readonly Required<Change>[];
  /** All changes of experimental operations. */
  readonly experimental: readonly Change[];
}

/** @param now when the release with the document `after` is made, in Unix milliseconds */
export function compareDocuments(before: Document, after: Document, now: number): Comparison {
  const remaining = locateOperations(after);
  const breaking: Required<Change>[] = [];
  const experimental: Change[] = [];
  for (const [operation, old] of locateOperations(before)) {
    const current = remaining.get(operation);
    const violations =
      current === undefined
        ? listRemovalViolations(old.operation, now)
        : compareOperations(old, current, now);
    const changes = violations.map((violation) => ({ operation, violation }));
    if (isStable(old.operation)) breaking.push(...changes);
    else if (changes.length > 0) experimental.push(...changes);
    else if (current === undefined || toText(old) !== toText(current)) experimental.push({ operation });
  }
  return { breaking, experimental };
}

function isStable(operation: Operation): boolean {
  return operation['x-stability'] !== 'experimental';
}

function toText({ operation, document }: Located): string {
  return toComparableText(operation, document);
}

function compareOperations(old: Located, current: Located, now: number): Violation[] {
  const violations = listNoticeViolations(old.operation, current.operation, now);
  const report = (rule: RuleId, text: string) => violations.push({ rule, text });
  const start = (direction: Direction): SchemaComparison => ({
    before: old.document,
    after: current.document,
    direction,
    report,
    compared: new Set(),
  });
  const { operationId } = current.operation;
  if (operationId !== old.operation.operationId) report('operation-kept', `its name is ${operationId}`);
  if (isStable(old.operation) && !isStable(current.operation)) report('stability-kept', 'it is experimental');
  compareAccess(old, current, report);
  const request = start('request');
  compareParameters(old.operation, current.operation, request);
  compareRequestBodies(old.operation, current.operation, request);
  compareResponses(old.operation, current.operation, start);
  return violations;
}

/** Each way to be allowed to call the operation must still be enough. */
function compareAccess(old: Located, current: Located, report: SchemaComparison['report']): void {
  const [before, after] = [old, current].map(({ document, operation }) => {
    const alternatives = operation.security ?? document.security ?? [];
    return (alternatives.length === 0 ? [{}] : alternatives).map((requirement) =>
      Object.entries(requirement).flatMap(([name, scopes]) => [
        toComparableText(document.components.securitySchemes?.[name], document),
        ...scopes,
      ]),
    );
  }) as [string[][], string[][]];
  for (const granted of before) {
    const isEnough = after.some((needed) => needed.every((each) => granted.includes(each)));
    if (!isEnough) report('access-kept', `security is ${JSON.stringify(current.operation.security)}`);
  }
}

function compareParameters(old: Operation, current: Operation, comparison: SchemaComparison): void {
  const [before, after] = [listParameters(old, comparison.before), listParameters(current, comparison.after)];
  for (const [name, parameter] of before) {
    const counterpart = after.get(name);
    if (counterpart === undefined) comparison.report('input-kept', `${name} is gone`);
    else {
      const [written, accepted] = [describeStyle(parameter), describeStyle(counterpart)];
      if (written !== accepted) comparison.report('input-accepted', `${name} is ${accepted}, was ${written}`);
      compareSchemas(parameter.schema, counterpart.schema, name, comparison);
    }
  }
  for (const [name, { required }] of after) {
    if (required && !before.get(name)?.required) comparison.report('input-optional', `${name} is required`);
  }
}

/** How a parameter is written, with the defaults of OpenAPI 3.1 (section 4.8.12.2). */
function describeStyle({ in: place, style, explode, allowReserved = false }: Parameter): string {
  const written = style ?? (place === 'query' || place === 'cookie' ? 'form' : 'simple');
  const isExploded = explode ?? written === 'form';
  return `of style ${written}${isExploded ? ', exploded' : ''}${allowReserved ? ', with reserved characters' : ''}`;
}

/** By place and name; names of headers are independent of case. */
function listParameters({ parameters = [] }: Operation, document: Document) {
  return new Map(
    parameters
      .map((parameter) => resolve(parameter, document))
      .map((parameter) => {
        const name = parameter.in === 'header' ? parameter.name.toLowerCase() : parameter.name;
        return [`${parameter.in} parameter ${name}`, parameter];
      }),
  );
}

function compareRequestBodies(
  { requestBody: old }: Operation,
  { requestBody: current }: Operation,
  comparison: SchemaComparison,
): void {
  if (current?.required && !old?.required) comparison.report('input-optional', 'request body is required');
  if (old !== undefined) compareContent(old, current ?? {}, 'request body', comparison);
}

import { compareAccess } from './access.js';
import { createComparisons, type OperationComparison } from './comparison.js';
import { listNoticeViolations, listRemovalViolations } from './deprecation.js';
import type { Document, Located } from './document.js';
import { locateOperations } from './locate.js';
import { DocumentError, toComparableText } from './references.js';
import { compareRequests } from './requests.js';
import { compareResponses } from './responses.js';
import { MIN_NOTICE_MONTHS, RULES, type RuleId, type Violation } from './rules.js';
import { compareStability, isStable } from './stability.js';

export { type Document, DocumentError, MIN_NOTICE_MONTHS, RULES, type RuleId, type Violation };

/** What changed in an operation, by its method and path. */
export interface Change {
  readonly operation: string;
  /** Absent when the change is compatible. */
  readonly violation?: Violation;
}

export interface Comparison {
  /** Violations in operations that keep the rules: all but experimental ones. */
  readonly breaking: readonly Required<Change>[];
  /** All changes of experimental operations. */
  readonly experimental: readonly Change[];
}

/**
 * Compares two versions of an OpenAPI 3 document, as parsed from JSON.
 *
 * @param now when the release with the document `after` is made, in Unix milliseconds
 * @throws DocumentError when a document is not OpenAPI 3, or has a reference that leads nowhere
 */
export function compareDocuments(before: Document, after: Document, now: number): Comparison {
  for (const document of [before, after]) checkDocument(document);
  const remaining = locateOperations(after);
  const start = createComparisons(before, after);
  const breaking: Required<Change>[] = [];
  const experimental: Change[] = [];
  for (const [operation, old] of locateOperations(before)) {
    const current = remaining.get(operation);
    const violations =
      current === undefined
        ? listRemovalViolations(old.operation, now)
        : comparing(operation, () => compareOperations(old, current, now, start));
    for (const violation of violations) {
      // The mark itself is what clients of an experimental operation rely on.
      const isBreaking = isStable(old.operation) || violation.rule === 'stability-kept';
      (isBreaking ? breaking : experimental).push({ operation, violation });
    }
    if (isStable(old.operation) || violations.length > 0) continue;
    if (current === undefined || toText(old) !== toText(current)) experimental.push({ operation });
  }
  return { breaking, experimental };
}

function checkDocument(document: { readonly openapi?: unknown } | null): void {
  const version = document?.openapi;
  if (typeof version === 'string' && version.startsWith('3.')) return;
  throw new DocumentError('it is not an OpenAPI 3 document: `openapi` is not "3.…"');
}

/**
 * A document that is not valid OpenAPI, with a string for a list perhaps, makes a comparison throw anywhere. The error
 * names the operation.
 */
function comparing<Result>(operation: string, compare: () => Result): Result {
  try {
    return compare();
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    const advice = 'is the document valid?';
    throw new DocumentError(`${operation} cannot be compared (${cause.message}): ${advice}`, { cause });
  }
}

function toText({ operation, document }: Located): string {
  return toComparableText(operation, document);
}

function compareOperations(
  old: Located,
  current: Located,
  now: number,
  start: ReturnType<typeof createComparisons>,
): Violation[] {
  const violations = listNoticeViolations(old.operation, current.operation, now);
  const operations = start(old, current, violations);
  compareNames(operations);
  compareStability(operations);
  compareAccess(operations);
  compareRequests(operations);
  compareResponses(operations);
  return violations;
}

/** An operation that had no name may get one. */
function compareNames({ old, current, report }: OperationComparison): void {
  const [was, is] = [old.operation.operationId, current.operation.operationId];
  if (was !== undefined && was !== is) report('operation-kept', `its name is ${is}, was ${was}`);
}

/** The changes as the command prints them. A change of a schema that several operations share is one text. */
export function describeChanges({ breaking, experimental }: Comparison) {
  return {
    breaking: group(breaking).map(
      ([
        {
          operation,
          violation: { rule, text },
        },
        count,
      ]) => {
        const others = count > 1 ? ` and ${count - 1} more` : '';
        return `Breaking: ${operation}${others}: ${text}\n  ${RULES[rule]} (${rule})`;
      },
    ),
    experimental: experimental.map(
      ({ operation, violation }) => `Experimental: ${operation}: ${violation?.text ?? 'changed compatibly'}`,
    ),
  };
}

/** The first of the violations that are the same, and how many there are. */
function group(breaking: Comparison['breaking']): [Required<Change>, count: number][] {
  const keyOf = ({ violation: { rule, text } }: Required<Change>) => `${rule} ${text}`;
  const counts = new Map<string, number>();
  for (const change of breaking) counts.set(keyOf(change), (counts.get(keyOf(change)) ?? 0) + 1);
  const first = new Map(breaking.toReversed().map((change) => [keyOf(change), change]));
  return [...counts].map(([key, count]) => [first.get(key) as Required<Change>, count]);
}

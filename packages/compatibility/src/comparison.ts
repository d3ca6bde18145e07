import type { Document, Located } from './document.js';
import { toComparableText } from './references.js';
import type { RuleId, Violation } from './rules.js';
import { createSchemaReader, type SchemaReader } from './schema-reader.js';

/** What a schema describes values of. In the body of an `error`, codes may be added. */
export type Direction = 'request' | 'response' | 'error';

/** What comparisons of schemas share within one operation. */
export interface SchemaComparison {
  readonly before: SchemaReader;
  readonly after: SchemaReader;
  readonly direction: Direction;
  readonly report: (rule: RuleId, text: string) => void;
  /** Pairs of schemas that were compared, because schemas may recur, and may contain themselves. */
  readonly compared: Pairs<true>;
  readonly attempts: Attempts;
  /** Whether two values are alike, with all that they refer to and without texts for readers. */
  isSame(old: unknown, now: unknown): boolean;
}

/** Whether one schema can replace the other, for the pairs that were tried. */
interface Attempts {
  readonly known: Pairs<boolean>;
  /** Pairs that rest on a pair whose attempt has not ended, in their order. */
  readonly assumed: [object, object][];
}

/** A value for two objects, in their order. */
export class Pairs<Value> {
  readonly #values = new WeakMap<object, WeakMap<object, Value>>();

  get(first: object, second: object): Value | undefined {
    return this.#values.get(first)?.get(second);
  }

  set(first: object, second: object, value: Value): void {
    const values = this.#values.get(first) ?? new WeakMap();
    this.#values.set(first, values.set(second, value));
  }

  delete(first: object, second: object): void {
    this.#values.get(first)?.delete(second);
  }
}

/** Two versions of an operation, and where to report what breaks a rule. */
export interface OperationComparison {
  readonly old: Located;
  readonly current: Located;
  readonly report: SchemaComparison['report'];
  compareIn(direction: Direction): SchemaComparison;
}

/** Starts comparisons of the operations of two documents, which share what they have read. */
export function createComparisons(before: Document, after: Document) {
  const readers = { before: createSchemaReader(before), after: createSchemaReader(after) };
  const attempt = (): Attempts => ({ known: new Pairs(), assumed: [] });
  const attempts = { request: attempt(), response: attempt(), error: attempt() };
  const isSame = (old: unknown, now: unknown) =>
    toComparableText(old, before) === toComparableText(now, after);
  return (old: Located, current: Located, violations: Violation[]): OperationComparison => {
    const report: SchemaComparison['report'] = (rule, text) => void violations.push({ rule, text });
    const compareIn = (direction: Direction): SchemaComparison => ({
      ...readers,
      direction,
      report,
      compared: new Pairs(),
      attempts: attempts[direction],
      isSame,
    });
    return { old, current, report, compareIn };
  };
}

import type { SchemaComparison } from './comparison.js';
import type { Body, Document, Schema } from './document.js';
import { resolve } from './references.js';
import type { Alternative } from './schema-reader.js';

/** The values that the alternatives name. */
export function listValues(alternatives: readonly Alternative[]): readonly unknown[] {
  return alternatives.flatMap(({ schema }) => (schema.enum ?? []) as readonly unknown[]);
}

/**
 * Whether a document names values and leaves room for others, as `anyOf: [{ type: string, enum: […] }, { type: string }]`
 * does. Clients of such a response expect new values.
 */
export function isOpenEnum(alternatives: readonly Alternative[]): boolean {
  return listValues(alternatives).length > 0 && alternatives.some(({ schema }) => isAnyText(schema));
}

function isAnyText({ type, enum: values }: Schema): boolean {
  return type === 'string' && values === undefined;
}

/** Error codes in an enum may be added, and the list may become open. None may be removed. */
export function compareCodes(
  olds: readonly Alternative[],
  nows: readonly Alternative[],
  place: string,
  { direction, report }: SchemaComparison,
): boolean {
  const isText = (alternatives: readonly Alternative[]) =>
    alternatives.every(({ schema }) => schema.type === 'string');
  if (direction !== 'error' || !place.endsWith('.code') || !isText(olds)) return false;
  const [before, after] = [listValues(olds), listValues(nows)];
  if (before.length === 0 && !isText(nows)) return false;
  if (!isText(nows)) report('output-expected', `${place} is not always a string`);
  const isClosing = after.length > 0 && !nows.some(({ schema }) => schema.enum === undefined);
  const wasOpen = olds.some(({ schema }) => schema.enum === undefined);
  if (isClosing && wasOpen) report('responses-open', `${place} excludes other codes`);
  for (const code of before.filter((each) => !after.includes(each)))
    report('codes-kept', `${place} is no longer ${code}`);
  return true;
}

/** The codes that a status can have. The document has an example of each, by the name of the code. */
export function listExampleCodes({ content = {} }: Body, document: Document): Set<string> {
  const examples = Object.values(content).flatMap((media) => Object.entries(media.examples ?? {}));
  return new Set(
    examples.flatMap(([name, reference]) => {
      const { value } = resolve(reference, document) as {
        readonly value?: { readonly code?: unknown } | null;
      };
      return value?.code === name ? [name] : [];
    }),
  );
}

import type { Document } from './document.js';

/** A document that cannot be compared. Its message says what is wrong with it. */
export class DocumentError extends Error {
  override readonly name = 'DocumentError';
}

/**
 * What a reference leads to, with the members beside the `$ref` on top; anything else as it is.
 *
 * @throws DocumentError when it leads nowhere, out of the document, or to itself
 */
export function resolve<Value extends object>(value: Value, document: Document): Value {
  const followed = new Set<string>();
  let resolved = value;
  for (;;) {
    const { $ref, ...rest } = resolved as Value & { readonly $ref?: unknown };
    if (typeof $ref !== 'string') return resolved;
    if (followed.has($ref)) throw new DocumentError(`${$ref} refers to itself`);
    followed.add($ref);
    resolved = { ...find($ref, document), ...rest } as Value;
  }
}

function find(reference: string, document: Document): object {
  const target = follow(reference, document);
  if (isObject(target)) return target;
  const advice = reference.startsWith('#') ? '' : ': bundle what it refers to into one file first';
  throw new DocumentError(`${reference} is not in the document${advice}`);
}

/** RFC 6901, in the fragment of a URI */
function follow(reference: string, document: Document): unknown {
  if (!reference.startsWith('#')) return undefined;
  return reference
    .split('/')
    .slice(1)
    .map(decode)
    .reduce<unknown>(
      (node, name) => (isObject(node) && Object.hasOwn(node, name) ? node[name] : undefined),
      document,
    );
}

function decode(name: string): string {
  const isEscaped = /^(?:[^%]|%[0-9a-f]{2})*$/i.test(name);
  return (isEscaped ? decodeURIComponent(name) : name).replaceAll('~1', '/').replaceAll('~0', '~');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** The last part of a reference; undefined for anything else. */
export function nameOf(value: unknown): string | undefined {
  const reference = isObject(value) ? value.$ref : undefined;
  return typeof reference === 'string' ? decode(reference.split('/').at(-1) ?? '') : undefined;
}

/**
 * Whether a member is for readers: a text, or an example. An object of that name may be the schema of a member that is
 * called `description` or `example`.
 */
function isForReaders(key: string, member: unknown): boolean {
  if (key === 'example') return !isObject(member) || Array.isArray(member);
  if (key === 'examples') return Array.isArray(member);
  return typeof member === 'string' && ['title', 'description', 'summary', '$comment'].includes(key);
}

/** A value as it is written, without what is for readers. */
export function toOwnText(value: unknown): string {
  return JSON.stringify(value, (key, member: unknown) => (isForReaders(key, member) ? undefined : member));
}

/**
 * The text of a value and all that it refers to, without texts for readers. It is the same for values that differ only in
 * these texts, or in the order of their members.
 */
export function toComparableText(value: unknown, document: Document): string {
  const referenced = new Map<string, string>();
  const toText = (each: unknown): string =>
    JSON.stringify(each, (key, member: unknown) => {
      if (key === '$ref' && typeof member === 'string' && !referenced.has(member)) {
        referenced.set(member, '');
        // An example may have a member of this name that leads nowhere.
        referenced.set(member, toText(follow(member, document)) ?? '');
      }
      if (isForReaders(key, member)) return undefined;
      return isObject(member) && !Array.isArray(member) ? sortMembers(member) : member;
    });
  const text = toText(value);
  const ordered = [...referenced].sort(([a], [b]) => (a < b ? -1 : 1));
  return [text, ...ordered.flat()].join('\n');
}

function sortMembers(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

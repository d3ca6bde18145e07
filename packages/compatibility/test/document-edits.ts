import { readFile } from 'node:fs/promises';
import { compareDocuments, type Document } from '../src/compatibility.js';

type Node = Record<string, unknown>;
export type Edit = (document: object) => void;

/** The document of a release. It is a copy, so that no edit changes with what the service, or another store, releases. */
export const RELEASED = JSON.parse(await readFile(new URL('released.json', import.meta.url), 'utf8'));

/** When the next release is made. */
export const RELEASE_TIME = Date.parse('2027-03-01T00:00:00Z');

export const LIST = 'paths /pets get';
export const CREATE = 'paths /pets post';
export const GET = 'paths /pets/{petId} get';
export const SCHEMAS = 'components schemas';
export const NEW_PET = `${SCHEMAS} NewPet`;
export const PET = `${SCHEMAS} Pet`;

/** An optional member and an optional parameter that the document does not have. */
export const NOTE = { type: 'string', maxLength: 50 };
export const TAG = { in: 'query', name: 'tag', schema: { type: 'string' } };

/** Edits a copy of the document and compares the two. */
export function compareAfter(edit: Edit, now = RELEASE_TIME) {
  const draft = structuredClone(RELEASED);
  edit(draft);
  return compareDocuments(RELEASED, draft as Document, now);
}

/** The parent and the last name of a path such as "paths /pets get". The parent has to exist. */
function find(document: object, path: string): [Node, string] {
  const names = path.split(' ');
  const last = names.pop() as string;
  const parent = names.reduce((node, name) => {
    if (!Object.hasOwn(node, name)) throw new Error(`${path} has no ${name}`);
    return node[name] as Node;
  }, document as Node);
  return [parent, last];
}

export const set =
  (path: string, value: unknown): Edit =>
  (document) => {
    const [parent, name] = find(document, path);
    parent[name] = value;
  };

export const drop =
  (path: string): Edit =>
  (document) => {
    const [parent, name] = find(document, path);
    if (!Object.hasOwn(parent, name)) throw new Error(`there is no ${path}`);
    if (Array.isArray(parent)) parent.splice(Number(name), 1);
    else delete parent[name];
  };

export const append =
  (path: string, value: unknown): Edit =>
  (document) => {
    const [parent, name] = find(document, path);
    parent[name] = [...((parent[name] as unknown[] | undefined) ?? []), value];
  };

export const rename =
  (path: string, name: string): Edit =>
  (document) => {
    const [parent, old] = find(document, path);
    parent[name] = parent[old];
    drop(path)(document);
  };

export const all =
  (...edits: Edit[]): Edit =>
  (document) =>
    edits.forEach((edit) => {
      edit(document);
    });

export const deprecate = (path: string, since: string, sunset: string) =>
  all(
    set(`${path} deprecated`, true),
    set(`${path} x-deprecated-since`, since),
    set(`${path} x-sunset`, sunset),
  );

export const reverse =
  (path: string): Edit =>
  (document) => {
    const [parent, name] = find(document, path);
    (parent[name] as unknown[]).reverse();
  };

import { compareDocuments, type Document } from '../src/compatibility.js';

const NOW = Date.parse('2027-03-01T00:00:00Z');

/** A document with what is given, and nothing else. */
export function documentOf(members: object): Document {
  return { openapi: '3.1.0', info: { title: 'Lamps', version: '1.0.0' }, ...members } as Document;
}

/** A document whose only operation takes or returns a value of a schema; the schema may refer to `components`. */
export function documentWith(
  direction: 'request' | 'response',
  schema: unknown,
  schemas: object = {},
): Document {
  const content = { 'application/json': { schema } };
  const operation =
    direction === 'request'
      ? { requestBody: { content }, responses: { 204: { description: 'Done' } } }
      : { responses: { 200: { description: 'Lamps', content } } };
  return documentOf({ paths: { '/lamps': { post: operation } }, components: { schemas } });
}

/** The rules that the second document breaks, and where. */
export function listFindings(before: Document, after: Document): string[] {
  return compareDocuments(before, after, NOW).breaking.map(
    ({ operation, violation: { rule, text } }) => `${rule}: ${operation}: ${text}`,
  );
}

/** A copy, which shares no object with the document, as two files would. */
export function copy(document: Document): Document {
  return JSON.parse(JSON.stringify(document));
}

import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'vitest';
import { buildDocument } from '../../src/openapi/document.js';
import { resources } from '../../src/router.js';
import type { Answer } from './harness.js';

interface Reference {
  readonly $ref: string;
}
interface Header {
  readonly required?: boolean;
  readonly description: string;
  readonly schema: { readonly type: string };
}
interface Response {
  readonly description: string;
  readonly headers: Record<string, Reference>;
  readonly content: Record<
    string,
    { schema: object; example?: unknown; examples?: Record<string, { value: unknown }> }
  >;
}
interface Operation {
  readonly operationId: string;
  readonly deprecated?: boolean;
  readonly description: string;
  readonly 'x-stability': string;
  readonly security: object[];
  readonly parameters?: { name: string; in: string; description: string; schema: object }[];
  readonly requestBody?: Pick<Response, 'content'>;
  readonly responses: Record<string, Response | Reference>;
}
interface Document {
  readonly servers: { url: string }[];
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { schemas: Record<string, object>; headers: Record<string, Header> };
}

export const SERVERS = {
  publicUrl: 'https://store.example.org',
  stagingUrl: 'https://staging.store.example.org',
} as const;

export const document = JSON.parse(JSON.stringify(buildDocument({ ...SERVERS, resources }))) as Document;

/** As the REST face adds them by itself, whatever the operation. */
const COMMON = ['content-type', 'content-length', 'date', 'connection', 'keep-alive', 'vary'];

const ajv = addFormats.default(new Ajv.default({ strict: false, allErrors: true }));
ajv.addFormat('int64', Number.isSafeInteger);
ajv.addSchema(document, 'document');

/** What is wrong with a value by a schema of the document, as words; empty when nothing is. */
export function findFaults(schema: object, value: unknown): string {
  const validate = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')));
  return validate(value) ? '' : ajv.errorsText(validate.errors);
}

export function listOperations(): Operation[] {
  return Object.values(document.paths).flatMap((item) => Object.values(item));
}

/** The response that the document describes, if it does. */
export function findResponse({ responses }: Operation, status: number): Response | undefined {
  const response = responses[status];
  return response && '$ref' in response ? resolve<Response>(response) : response;
}

/** Fails unless the document describes the answer: its status, every header, its media type and its body. */
export function expectDescribed(operation: Operation, { status, headers, body }: Answer): void {
  const where = `${operation.operationId} ${status}`;
  const response = findResponse(operation, status);
  if (response === undefined) throw new Error(`${where} is not in the document`);
  const described = Object.entries(response.headers).map(([name, reference]) => ({
    name,
    ...resolve<Header>(reference),
  }));
  for (const { name, required, schema } of described) {
    const value = headers.get(name);
    if (value === null) expect(required ?? false, `${where}: ${name} is missing`).toBe(false);
    else expect(findFaults(schema, read(schema, value)), `${where}: ${name} is ${value}`).toBe('');
  }
  const known = [...COMMON, ...described.map(({ name }) => name.toLowerCase())];
  const unknown = [...headers.keys()].filter((name) => !known.includes(name) && !isOfHelmet(name));
  expect(unknown.join(), `${where}: headers that are not described`).toBe('');
  const [mediaType = '', content] = Object.entries(response.content)[0] ?? [];
  expect(headers.get('content-type'), where).toBe(mediaType);
  expect(findFaults(content?.schema ?? {}, body), where).toBe('');
  if (status >= 400) {
    expect(body.status, where).toBe(status);
    expect(Object.keys(content?.examples ?? {})).toContain(body.code);
  }
}

function resolve<Target>({ $ref }: Reference): Target {
  const target = $ref
    .slice(2)
    .split('/')
    .reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], document);
  return target as Target;
}

function read({ type }: Header['schema'], value: string): unknown {
  return type === 'integer' && /^\d+$/.test(value) ? Number(value) : value;
}

/** Security headers are for browsers, not for clients of the contract. */
function isOfHelmet(name: string): boolean {
  return /^(x-(content|dns|download|frame|permitted|xss)|cross-origin|content-security|strict-transport|referrer|origin-agent)/.test(
    name,
  );
}

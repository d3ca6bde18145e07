import type { TestResponse } from '@animal-store/platform/testing';
import Ajv, { type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'vitest';
import { definition } from '#operations-under-test';
import { buildDocument } from '../../src/docs/document.js';
import type { Resource } from '../../src/operations/resource.js';

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
  readonly headers: Record<string, Header | Reference>;
  /** Absent from a 204. */
  readonly content?: Record<
    string,
    { schema: object; example?: unknown; examples?: Record<string, { value: unknown }> }
  >;
}
interface Operation {
  readonly operationId: string;
  readonly tags: string[];
  readonly deprecated?: boolean;
  readonly description: string;
  readonly 'x-stability': string;
  /** Of a deprecated operation: when it is removed */
  readonly 'x-sunset'?: string;
  readonly security: object[];
  readonly parameters?: {
    name: string;
    in: string;
    required?: boolean;
    description: string;
    schema: object;
  }[];
  readonly requestBody?: Pick<Response, 'content'>;
  readonly responses: Record<string, Response | Reference>;
}
/** An operation with its place in the document. */
export interface ListedOperation extends Operation {
  /** In upper case. */
  readonly method: string;
  readonly path: string;
}
interface Document {
  readonly servers: { url: string }[];
  readonly tags: { name: string }[];
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { schemas: Record<string, object>; headers: Record<string, Header> };
}

export const SERVERS = {
  publicUrl: 'https://store.example.org',
  stagingUrl: 'https://staging.store.example.org',
} as const;

/** Headers that any response may have. */
const COMMON_HEADERS = [
  'cache-control',
  'content-type',
  'content-length',
  'date',
  'connection',
  'keep-alive',
  'vary',
];
/** For browsers, and not part of the contract. */
const SECURITY_HEADERS =
  /^(x-(content|dns|download|frame|permitted|xss)|cross-origin|content-security|strict-transport|referrer|origin-agent)/;

/** The document of some resources, and whether values and responses agree with it. */
export function createChecker(resources: readonly Resource[]) {
  const document: Document = JSON.parse(JSON.stringify(buildDocument({ definition, ...SERVERS, resources })));
  const ajv = addFormats.default(new Ajv.default({ strict: false, allErrors: true }));
  ajv.addFormat('int64', Number.isSafeInteger);
  ajv.addSchema(close(document), 'document');
  const operations: ListedOperation[] = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() })),
  );

  const validators = new Map<object, ValidateFunction>();
  const resolve = <Target>({ $ref }: Reference) =>
    $ref
      .slice(2)
      .split('/')
      .reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], document) as Target;

  /** Why a value does not match a schema of the document; empty when it does. */
  function findProblems(schema: object, value: unknown): string {
    const validate =
      validators.get(schema) ??
      ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')));
    validators.set(schema, validate);
    return validate(value) ? '' : ajv.errorsText(validate.errors);
  }

  function findOperation(operationId: string): ListedOperation {
    const found = operations.find((operation) => operation.operationId === operationId);
    if (found === undefined) throw new Error(`${operationId} is not in the document`);
    return found;
  }

  function findResponse({ responses }: Operation, status: number): Response | undefined {
    const response = responses[status];
    return response && '$ref' in response ? resolve<Response>(response) : response;
  }

  /** Fails unless the document describes the response: its status, every header, its media type and its body. */
  function expectDescribed(operationId: string, { status, headers, body }: TestResponse): void {
    const where = `${operationId} ${status}`;
    const response = findResponse(findOperation(operationId), status);
    if (response === undefined) {
      throw new Error(
        `${operationId} answered ${status} (${body?.message}), which the document does not describe; ` +
          'is the resource listed in src/router.ts?',
      );
    }
    const described = Object.entries(response.headers).map(([name, reference]) => ({
      name,
      ...('$ref' in reference ? resolve<Header>(reference) : reference),
    }));
    for (const { name, required, schema } of described) {
      const value = headers.get(name);
      if (value === null) expect(required ?? false, `${where}: ${name} is missing`).toBe(false);
      else expect(findProblems(schema, parseHeader(schema, value)), `${where}: ${name} is ${value}`).toBe('');
    }
    const known = [...COMMON_HEADERS, ...described.map(({ name }) => name.toLowerCase())];
    const unknown = [...headers.keys()].filter(
      (name) => !known.includes(name) && !SECURITY_HEADERS.test(name),
    );
    expect(unknown.join(), `${where}: headers that are not described`).toBe('');
    const [mediaType = null, content] = Object.entries(response.content ?? {})[0] ?? [];
    expect(headers.get('content-type'), where).toBe(mediaType);
    if (content === undefined) expect(body, where).toBeUndefined();
    else expect(findProblems(content.schema, body), where).toBe('');
    if (status >= 400) {
      expect(body.status, where).toBe(status);
      expect(Object.keys(content?.examples ?? {})).toContain(body.code);
    }
  }

  return { document, operations, findProblems, findOperation, findResponse, expectDescribed };
}

/**
 * The document with closed responses and codes. Clients must tolerate members and codes that they do not know, but what
 * the service sends today has to be described.
 */
function close<Node>(node: Node): Node {
  if (typeof node !== 'object' || node === null) return node;
  if (Array.isArray(node)) return node.map(close) as Node;
  const { anyOf, ...members } = node as { readonly anyOf?: readonly { readonly enum?: unknown }[] };
  const closed = Object.fromEntries(Object.entries(members).map(([name, value]) => [name, close(value)]));
  if (anyOf !== undefined) {
    const named = anyOf.filter((each) => each.enum !== undefined);
    closed.anyOf = close(named.length > 0 ? named : anyOf);
  }
  return (
    'properties' in closed && 'type' in closed ? { additionalProperties: false, ...closed } : closed
  ) as Node;
}

function parseHeader({ type }: Header['schema'], value: string): unknown {
  return type === 'integer' && /^\d+$/.test(value) ? Number(value) : value;
}

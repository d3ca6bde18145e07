import { type Caller, post, rpcPath } from '@animal-store/platform/testing';
import { expect } from 'vitest';
import type { createChecker, ListedOperation } from './openapi-checker.js';

// Requests that are made from the document alone, so that an operation that is added is checked like the others.

type Checker = ReturnType<typeof createChecker>;
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly examples?: readonly unknown[];
}
type Members = Readonly<Record<string, unknown>>;

/** PostgreSQL stores none of these in a text column. */
const UNSTORABLE_TEXTS = ['\0', '\ud800'];
/** The last one may be valid, but does not fit into every integer column. */
const EXTREME_NUMBERS = [1.5, 1e300, 2 ** 53, Number.MAX_SAFE_INTEGER];
const INVALID_IDS = ['1.5', '99999999999999999999'];

/** The example of an operation's body; undefined when it has no body. */
export function bodyOf({ operationId, requestBody }: ListedOperation): unknown {
  if (requestBody === undefined) return undefined;
  const example = requestBody.content?.['application/json']?.example;
  if (example === undefined) {
    throw new Error(`${operationId} has no example: give its schema \`examples\` in its meta`);
  }
  return example;
}

/** The operation's path, with the same value for each path parameter. */
export function fillPath({ path }: ListedOperation, value: string): string {
  return path.replace(/\{\w+\}/g, value);
}

/** The parameters that a query must have, with the values that a test knows, or else with their examples. */
export function requiredParameters({ parameters = [] }: ListedOperation, values: Members = {}): Members {
  const required = parameters.filter((parameter) => parameter.in === 'query' && parameter.required);
  return Object.fromEntries(
    required.map(({ name, schema }) => [name, values[name] ?? (schema as Schema).examples?.[0] ?? '']),
  );
}

/** The same as the end of a URL; '' if there are none. */
export function requiredQuery(operation: ListedOperation, values: Members = {}): string {
  const parameters = Object.entries(requiredParameters(operation, values));
  const query = new URLSearchParams(parameters.map(([name, value]) => [name, String(value)]));
  return query.size === 0 ? '' : `?${query}`;
}

export function ordinaryInit(operation: ListedOperation, headers: Record<string, string> = {}): RequestInit {
  const { method, requestBody } = operation;
  return requestBody === undefined ? { method, headers } : { ...post(bodyOf(operation), headers), method };
}

/** Calls an operation over tRPC: a GET is a query. */
export function callRpc(
  call: Caller,
  { operationId, method }: ListedOperation,
  input: unknown,
  init: Parameters<Caller>[1] = {},
) {
  return method === 'GET'
    ? call(rpcPath(operationId, input), init)
    : call(`/trpc/${operationId}`, { ...post(input), ...init });
}

/**
 * The path of items that creates have just added, one within the other, or else of the first that there are.
 *
 * @param call with a key that the items may belong to
 */
export async function existingPath(
  operations: readonly ListedOperation[],
  operation: ListedOperation,
  call: Caller,
): Promise<string> {
  let filled = '';
  let template = '';
  for (const segment of operation.path.split('/').slice(1)) {
    const create = operations.find(({ method, path }) => method === 'POST' && path === template);
    template += `/${segment}`;
    if (!segment.startsWith('{')) {
      filled += `/${segment}`;
      continue;
    }
    const created = create && (await call(`/v1${filled}`, ordinaryInit(create)));
    filled = created?.headers.get('location')?.replace(/^.*?\/v1/, '') ?? `${filled}/1`;
  }
  return filled;
}

/** Fails unless every operation copes, over both protocols, with bodies that the database cannot store. */
export async function expectUnstorableBodiesRejected(checker: Checker, call: Caller): Promise<void> {
  let checked = 0;
  for (const operation of checker.operations) {
    const { operationId, method } = operation;
    for (const { change, isInvalid } of listUnstorableChanges(checker, operation)) {
      const body = { ...(bodyOf(operation) as Members), ...change };
      const path = await existingPath(checker.operations, operation, call);
      const expected = isInvalid ? 400 : expect.toSatisfy((status: number) => status < 500);
      const answer = await call(`/v1${path}`, { ...post(body), method });
      expect([operationId, change, answer.status]).toEqual([operationId, change, expected]);
      checker.expectDescribed(operationId, answer);
      const input = { ...readPathParameters(operation, path), ...body };
      const { status } = await callRpc(call, operation, input);
      expect([operationId, change, status]).toEqual([operationId, change, expected]);
      checked += 1;
    }
  }
  expect(checked).toBeGreaterThan(0);
}

/** Fails unless every operation with an integer in its path rejects what is not an identifier, over both protocols. */
export async function expectInvalidIdsRejected(checker: Checker, call: Caller): Promise<void> {
  let checked = 0;
  for (const operation of checker.operations) {
    const { operationId, parameters = [] } = operation;
    const ids = parameters.filter(
      (parameter) => parameter.in === 'path' && hasType(parameter.schema, 'integer'),
    );
    for (const id of ids.length === 0 ? [] : INVALID_IDS) {
      const path = fillPath(operation, id);
      const answer = await call(`/v1${path}`, ordinaryInit(operation));
      expect([operationId, id, answer.status]).toEqual([operationId, id, 404]);
      checker.expectDescribed(operationId, answer);
      const input = { ...readPathParameters(operation, path), ...(bodyOf(operation) as Members | undefined) };
      const { status } = await callRpc(call, operation, input);
      expect([operationId, id, status]).toEqual([operationId, id, 400]);
      checked += 1;
    }
  }
  expect(checked).toBeGreaterThan(0);
}

/** One change of the body for each value that the database may not be able to store. */
function listUnstorableChanges({ document, findProblems }: Checker, operation: ListedOperation) {
  const resolve = (schema: Schema): Schema =>
    document.components.schemas[schema.$ref?.split('/').at(-1) ?? ''] ?? schema;
  const { schema = {} } = operation.requestBody?.content?.['application/json'] ?? {};
  return Object.entries(resolve(schema).properties ?? {}).flatMap(([name, property]) => {
    const resolved = resolve(property);
    const texts = hasType(resolved, 'string') ? UNSTORABLE_TEXTS : [];
    const isNumber = hasType(resolved, 'integer') || hasType(resolved, 'number');
    const numbers = isNumber ? EXTREME_NUMBERS : [];
    return [
      ...texts.map((text) => ({ change: { [name]: text }, isInvalid: true })),
      ...numbers.map((n) => ({ change: { [name]: n }, isInvalid: findProblems(property, n) !== '' })),
    ];
  });
}

function hasType(schema: Schema, type: string): boolean {
  const { type: own, anyOf = [] } = schema;
  return [own].flat().includes(type) || anyOf.some((each) => hasType(each, type));
}

/** The path parameters of an operation as its input over tRPC has them. */
export function readPathParameters({ path: template }: ListedOperation, path: string): Members {
  const values = path.split('/');
  const parameters = template.split('/').flatMap((segment, index) => {
    const value = values[index] ?? '';
    const [, name] = /^\{(\w+)\}$/.exec(segment) ?? [];
    return name === undefined ? [] : [[name, Number.isNaN(Number(value)) ? value : Number(value)]];
  });
  return Object.fromEntries(parameters);
}

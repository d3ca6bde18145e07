import { createProtocols, PROTOCOLS, patient, post } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { INSERT_EXAMPLES, OTHER_TABLE, REUSE_EXAMPLES, resources, TABLE } from '#operations-under-test';
import { bodyOf, existingPath, readPathParameters } from '../support/document-requests.js';
import { createChecker, type ListedOperation } from '../support/openapi-checker.js';
import { useService } from '../support/test-service.js';

// What holds for the body of every operation, from the document alone.

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
}

const { document, operations, findProblems } = createChecker(resources);
const resolve = (schema: Schema): Schema =>
  document.components.schemas[schema.$ref?.split('/').at(-1) ?? ''] ?? schema;
const schemaOf = ({ requestBody }: ListedOperation) =>
  resolve(requestBody?.content?.['application/json']?.schema ?? {});
const membersOf = (operation: ListedOperation) => Object.entries(schemaOf(operation).properties ?? {});
const WITH_BODY = operations
  .filter(({ requestBody }) => requestBody !== undefined)
  .map((operation) => [operation.operationId, operation] as const);

const { call: send, service } = useService();
const call = patient(send);
const protocols = createProtocols(resources)(call);

beforeAll(() => service.database.pool.query(INSERT_EXAMPLES));

/** What both tables contain, to the last member. */
async function readAll(): Promise<unknown[]> {
  const tables = [TABLE, OTHER_TABLE].map((table) =>
    service.database.pool.query(`SELECT to_jsonb(t) AS row FROM ${table} AS t ORDER BY id`),
  );
  return (await Promise.all(tables)).flatMap(({ rows }) => rows);
}

/** A body that succeeds, the path of what it is for, and the input that is both. */
async function prepare(operation: ListedOperation) {
  await service.database.pool.query(REUSE_EXAMPLES);
  const path = await existingPath(operations, operation, call);
  const body = bodyOf(operation) as Readonly<Record<string, unknown>>;
  return { path, body, input: { ...readPathParameters(operation, path), ...body } };
}

/** Of each kind some: those that the schema of a member refuses are wrong for it. */
const VALUES = [
  ...[null, '', ' ', 'x'.repeat(201), 'a\0', '\ud800', 'nothing of the kind', '3'],
  ...[0, -1, 3, 1.5, 1e300, 2 ** 53, true, [], {}],
];

test.each(WITH_BODY)(
  '%s refuses each value that its document refuses, by the name of the member and over every protocol, and stores nothing',
  async (_name, operation) => {
    const { input } = await prepare(operation);
    const before = await readAll();
    for (const [name, schema] of membersOf(operation)) {
      const wrong = VALUES.filter((value) => findProblems(schema, value) !== '');
      expect(wrong.length).toBeGreaterThan(5);
      for (const value of wrong)
        for (const protocol of PROTOCOLS) {
          const { code, result, fields } = await protocols[protocol](operation.operationId, {
            ...input,
            [name]: value,
          });
          const where = [protocol, name, value];
          expect([...where, code]).toEqual([...where, 'invalid_request']);
          expect([...where, result.message]).toEqual([...where, expect.stringMatching(`^${name} `)]);
          if (protocol !== 'REST') expect([...where, Object.keys(fields ?? {})]).toEqual([...where, [name]]);
        }
    }
    expect(await readAll()).toEqual(before);
  },
);

test.each(WITH_BODY)(
  '%s names what is missing, and refuses what is no object, and stores nothing',
  async (_name, operation) => {
    const { path, input } = await prepare(operation);
    const before = await readAll();
    for (const name of schemaOf(operation).required ?? [])
      for (const protocol of PROTOCOLS) {
        const { [name]: _left, ...rest } = input as Record<string, unknown>;
        const { code, result } = await protocols[protocol](operation.operationId, rest);
        expect([protocol, code]).toEqual([protocol, 'invalid_request']);
        expect(result.message).toMatch(new RegExp(`^${name} is required`));
      }
    for (const body of ['null', '[]', '3', '"x"', 'true', '{', '']) {
      const { method, operationId } = operation;
      const rest = await call(`/v1${path}`, { ...post(body), method });
      const rpc = await call(`/trpc/${operationId}`, post(body));
      expect([body, rest.status, rpc.status]).toEqual([body, 400, 400]);
    }
    expect(await readAll()).toEqual(before);
  },
);

test.each(WITH_BODY)(
  '%s refuses an empty body where its document does, and only there',
  async (_name, operation) => {
    const { path } = await prepare(operation);
    const { status } = await call(`/v1${path}`, { ...post({}), method: operation.method });
    expect(status === 400).toBe(findProblems(schemaOf(operation), {}) !== '');
  },
);

test.each(WITH_BODY)(
  '%s ignores members that it does not know: its output has none of them',
  async (_name, operation) => {
    const { path, body } = await prepare(operation);
    const [id] = path.split('/').map(Number).filter(Boolean);
    const unknown =
      '"id":99999,"__proto__":{"x":1},"constructor":3,"price":1.00000000000000000001,"createdAt":null';
    const text = `${JSON.stringify(body).slice(0, -1)},${unknown}}`;
    const { status, body: output } = await call(`/v1${path}`, { ...post(text), method: operation.method });
    expect([200, 201]).toContain(status);
    expect(output.id).toSatisfy((given: number) => (id === undefined ? given !== 99_999 : given === id));
    for (const name of ['price', 'x', '__proto__', 'constructor'])
      expect(Object.keys(output)).not.toContain(name);
  },
);

/** Texts that something on their way might change */
const TEXTS = [
  ...['  padded\t', 'Ünïcode ✨ 🐈‍⬛', '\u0301', '\ufeff', '\\u0041', '{a,b}', 'NULL', '$1', '"'],
  "Robert'); DROP TABLE pets;--",
];
const isText = ({ type, enum: values }: Schema) => type === 'string' && values === undefined;

test.each(
  WITH_BODY.flatMap(([name, operation]) =>
    membersOf(operation)
      .filter(([, schema]) => isText(resolve(schema)))
      .map(([member]) => [name, member, operation] as const),
  ),
)('%s keeps its %s exactly as it was sent, over every protocol', async (_name, member, operation) => {
  for (const text of TEXTS)
    for (const protocol of PROTOCOLS) {
      const { input } = await prepare(operation);
      const { result } = await protocols[protocol](operation.operationId, { ...input, [member]: text });
      expect([protocol, result[member]]).toEqual([protocol, text]);
      const rows = JSON.stringify(await readAll());
      expect(rows).toContain(JSON.stringify(text));
    }
});

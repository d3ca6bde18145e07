import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { appRouter, definition, itemSchema, resources } from '#operations-under-test';
import * as clientProtocol from '../../packages/client-core/src/protocol.js';
import { toPlanTable } from '../../packages/platform/src/contract/plans.js';
import * as protocol from '../../packages/platform/src/contract/protocol.js';
import { listOperations } from '../../packages/platform/src/operations/list-operations.js';
import { deprecated } from '../../packages/platform/test/support/deprecated.js';
import { errorTable } from '../../packages/platform/test/support/error-table.js';
import { createChecker, SERVERS } from '../../packages/platform/test/support/openapi-checker.js';
import { SCOPES } from '../../src/definition/scopes.js';
import { ownKey } from '../../src/store.js';
import { PUBLIC_URL, STAGING_URL, startService } from '../support/service.js';

const { document, operations, findProblems, findResponse } = createChecker(resources);

const UPDATE = 'if this change is intended: npm run docs:update, then review the diff';

test('the document changes only together with its reviewed copy', async () => {
  const reviewed = await readFile('docs/openapi.json', 'utf8');
  expect(document, UPDATE).toEqual(JSON.parse(reviewed));
});

test('every document and manifest says what the code and package.json say', async () => {
  const { deriveDocs } = await import(pathToFileURL('scripts/derived-docs.js').href);
  const { deriveMetadata } = await import(pathToFileURL('scripts/derived-metadata.js').href);
  const texts: Record<string, string> = {
    ...deriveDocs(document, definition, toPlanTable(definition)),
    ...deriveMetadata(),
  };
  const outdated = [];
  for (const [path, text] of Object.entries(texts)) {
    if ((await readFile(path, 'utf8')) !== text) outdated.push(path);
  }
  expect(outdated, UPDATE).toEqual([]);
});

test('the constants that every client knows are those of the service', () => {
  expect(Object.keys(clientProtocol).length).toBeGreaterThan(3);
  expect(protocol).toMatchObject({ ...clientProtocol });
});

test('npm run openapi prints only the document, with the addresses of the environment', () => {
  const { stdout, status } = spawnSync('npm', ['run', '-s', 'openapi', '--ignore-scripts'], {
    encoding: 'utf8',
    env: { ...process.env, PUBLIC_URL: `${SERVERS.publicUrl}/`, STAGING_URL: SERVERS.stagingUrl },
  });
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toEqual(document);
});

test('the service serves the document without a key', async () => {
  const service = await startService();
  const served = await fetch(`${service.url}/openapi.json`);
  const { paths, components, servers } = (await served.json()) as typeof document;
  await service.close();
  expect({ paths, components }).toEqual({ paths: document.paths, components: document.components });
  expect(servers.map(({ url }) => url)).toEqual([`${PUBLIC_URL}/v1`, `${STAGING_URL}/v1`]);
});

test('the document has no component that nothing refers to, also where nothing is deprecated', () => {
  const current = resources.map((resource) => ({
    ...resource,
    procedures: Object.fromEntries(
      Object.entries(resource.procedures).filter(([, { _def }]) => _def.meta?.deprecation === undefined),
    ),
  }));
  const without = createChecker(current).document;
  expect(Object.keys(without.components.headers)).not.toContain('Sunset');
  for (const each of [document, without]) {
    const text = JSON.stringify(each);
    const { schemas, headers } = each.components;
    for (const [kind, components] of Object.entries({ schemas, headers }))
      for (const name of Object.keys(components)) expect(text).toContain(`"#/components/${kind}/${name}"`);
  }
});

test('an Error has its three members and every code of the table', () => {
  const { schemas } = document.components;
  expect(schemas.Error).toMatchObject({
    properties: {
      code: { anyOf: [{ type: 'string', enum: Object.keys(errorTable) }, { type: 'string' }] },
      message: { type: 'string' },
      status: { type: 'integer' },
    },
    required: ['code', 'message', 'status'],
  });
});

test('a scope of a key is one of the known ones, or one that a later version adds', () => {
  const { Scope } = document.components.schemas;
  expect(Scope).toMatchObject({ anyOf: [{ type: 'string', enum: SCOPES }, { type: 'string' }] });
  expect(Scope).not.toHaveProperty('enum');
});

test('no response excludes members that a later version adds', () => {
  expect(JSON.stringify(document)).not.toContain('"additionalProperties":false');
});

test('Prefer, which any operation takes, is described once and is no parameter that generators would offer', () => {
  const described = JSON.parse(JSON.stringify(document)) as { info: { description: string } };
  expect(described.info.description).toContain('`Prefer: error=CODE`');
  for (const { parameters = [] } of operations)
    expect(parameters.map(({ name }) => name.toLowerCase())).not.toContain('prefer');
});

test('no string of the document has a control character, also once a generator has read the escapes of a pattern', () => {
  for (const [, text = ''] of JSON.stringify(document).matchAll(/"((?:[^"\\\\]|\\\\.)*)"/g))
    expect(text).not.toMatch(/\\\\u00[01]/);
});

test('every int64 states its bounds, and those that the database assigns are positive', () => {
  const int64s = JSON.stringify(document).match(/\{[^{}]*"format":"int64"[^{}]*\}/g) ?? [];
  expect(int64s.length).toBeGreaterThanOrEqual(8);
  for (const schema of int64s) {
    const { type, minimum, maximum } = JSON.parse(schema);
    expect([type, maximum]).toEqual(['integer', 2 ** 53 - 1]);
    // Ids that the database assigns, counts, and numbers of clients
    expect([1, 0, -(2 ** 53 - 1)]).toContain(minimum);
  }
  const item = document.components.schemas[itemSchema.meta()?.id ?? ''];
  expect(item).toMatchObject({ properties: { id: { minimum: 1 } } });
});

test('every resource has a tag with a proper name, in the order of the list, and every operation that of its resource', () => {
  const tagged = resources.map(({ name, procedures }) => ({
    tag: name.charAt(0).toUpperCase() + name.slice(1),
    names: Object.keys(procedures),
  }));
  expect(document.tags.map(({ name }) => name)).toEqual(tagged.map(({ tag }) => tag));
  const expected = tagged.flatMap(({ tag, names }) => names.map((name) => `${name} ${tag}`));
  expect(operations.map(({ operationId, tags }) => `${operationId} ${tags}`).sort()).toEqual(expected.sort());
});

test('whatever a pattern demands of a value is described in words, too', () => {
  const described = findPatterns({ name: 'document', node: document });
  expect(described.length).toBeGreaterThan(5);
  const silent = described.filter(({ description }) => !/\w+ \w+/.test(description));
  expect(silent, 'add a description to their meta').toEqual([]);
});

interface Described {
  readonly name: string;
  readonly description: string;
}

/** Schemas with a pattern, each with its own description or that of the parameter or header it belongs to. */
function findPatterns({
  name,
  node,
  parent = {},
}: {
  name: string;
  node: object;
  parent?: object;
}): Described[] {
  const { pattern, description } = { ...parent, ...node } as { pattern?: unknown; description?: string };
  const own = typeof pattern === 'string' ? [{ name, description: description ?? '' }] : [];
  const nested = Object.entries(node).filter(([, value]) => typeof value === 'object' && value !== null);
  return own.concat(
    nested.flatMap(([key, child]) =>
      findPatterns({ name: `${name}.${key}`, node: child, ...(key === 'schema' ? { parent: node } : {}) }),
    ),
  );
}

test('the description of what is deprecated names the date of removal', () => {
  const own = createChecker([...resources, deprecated.resource]);
  const sunset = '2030-12-05T00:00:00Z';
  expect(own.findOperation(deprecated.name)).toMatchObject({ deprecated: true, 'x-sunset': sunset });
  for (const operation of own.operations.filter((each) => each.deprecated))
    expect(operation.description).toContain(operation['x-sunset']);
});

test('every operation needs the bearer token, with a scope unless any key may call it, and every parameter is described', () => {
  const scopes = new Map(listOperations(appRouter).map(({ name, scope }) => [name, scope]));
  const own = resources.includes(ownKey) ? Object.keys(ownKey.procedures) : [];
  for (const name of own) expect([name, scopes.get(name)]).toEqual([name, 'any']);
  for (const { operationId, security, parameters = [] } of operations) {
    const scope = scopes.get(operationId);
    expect([...SCOPES, 'any']).toContain(scope);
    expect([operationId, security]).toEqual([operationId, [{ bearerAuth: scope === 'any' ? [] : [scope] }]]);
    for (const { description } of parameters) expect(description).toMatch(/\w/);
  }
});

test('every body has an example, and every example is valid', () => {
  for (const operation of operations) {
    const statuses = Object.keys(operation.responses).map(Number);
    const bodies = [operation.requestBody, ...statuses.map((status) => findResponse(operation, status))];
    for (const { schema, example, examples = {} } of bodies.flatMap((body) =>
      Object.values(body?.content ?? {}),
    )) {
      const values = example === undefined ? Object.values(examples).map(({ value }) => value) : [example];
      expect(values, `${operation.operationId}: give the schema \`examples\` in its meta`).not.toEqual([]);
      for (const value of values) expect(findProblems(schema, value)).toBe('');
    }
  }
});

test('every parameter that has to be sent has an example, and it is valid', () => {
  for (const { operationId, parameters = [] } of operations) {
    for (const { name, schema = {} } of parameters.filter(({ required }) => required)) {
      const { examples = [] } = schema as { readonly examples?: readonly unknown[] };
      expect(examples, `${operationId}: give ${name} \`examples\` in its meta`).not.toEqual([]);
      for (const example of examples) expect(findProblems(schema, example)).toBe('');
    }
  }
});

test('the example of a request body has only members of its schema', () => {
  for (const { operationId, requestBody } of operations) {
    const { schema = {}, example = {} } = requestBody?.content?.['application/json'] ?? {};
    const name =
      String((schema as { $ref?: string }).$ref)
        .split('/')
        .at(-1) ?? '';
    const { properties = {} } = (document.components.schemas[name] ?? {}) as { properties?: object };
    const unknown = Object.keys(example as object).filter((member) => !Object.hasOwn(properties, member));
    expect(unknown, `${operationId}: members of its example that its body does not have`).toEqual([]);
  }
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Editor, openEditor } from './editor.js';
import { type InstalledPackage, installPackage, ROOT } from './installed-package.js';

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly default?: unknown;
}
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly deprecated?: boolean;
  readonly 'x-sunset'?: string;
  readonly parameters?: readonly {
    readonly in: string;
    readonly name: string;
    readonly description: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Media };
  readonly responses: Readonly<Record<string, { readonly content?: Media }>>;
}
interface Media {
  readonly 'application/json': { readonly schema: Schema };
}
interface Field {
  readonly name: string;
  readonly schema: Schema;
  /** Where the code mentions it */
  readonly position: number;
}

const { paths, components }: { paths: Record<string, Record<string, Operation>>; components: Components } =
  JSON.parse(readFileSync(join(ROOT, 'docs/openapi.json'), 'utf8'));
interface Components {
  readonly schemas: Readonly<Record<string, Schema>>;
}

const MARK = '‸';
let code = `import { type ApiClientError, createClient } from '@animal-store/client';
const client = createClient({ baseUrl: '', apiKey: '' });
`;

/** Appends to the code that the editor opens. Resolves the marks in it to their positions. */
function write(line: string): number[] {
  const parts = line.split(MARK);
  const start = code.length;
  code += `${parts.join('')}\n`;
  return parts.slice(1).map((_part, index) => start + parts.slice(0, index + 1).join('').length);
}

/** What the document says of each operation, and where the code mentions it and its fields. */
const operations = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => {
    const { operationId: name, parameters = [], requestBody, responses } = operation;
    const call = method === 'get' ? 'query' : 'mutate';
    const inputs: Record<string, Schema> = {
      ...Object.fromEntries(
        parameters
          .filter((parameter) => parameter.in === 'path' || parameter.in === 'query')
          .map(({ name: member, description, schema }) => [member, { ...schema, description }]),
      ),
      ...resolve(requestBody?.content['application/json'].schema).properties,
    };
    const names = Object.keys(inputs);
    const members = names.map((member) => `${MARK}${member}: null!`).join(', ');
    const input = names.length === 0 ? '' : `{ ${members} }`;
    const [result = 0, member = 0, ...inputPositions] = write(
      `const ${MARK}${name}Result = await client.${MARK}${name}.${call}(${input});`,
    );
    const [blank = 0] = names.length === 0 ? [] : write(`client.${name}.${call}({ ${MARK} });`);
    const [, success] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? [];
    const output = success?.content?.['application/json'].schema;
    return {
      name,
      path,
      method,
      operation,
      result,
      member,
      blank,
      output,
      inputs: names.map((each, index) => ({
        name: each,
        schema: inputs[each] ?? {},
        position: inputPositions[index] ?? 0,
      })),
      outputs: writeFields(output, `${name}Result`),
    };
  }),
);
const [errorCode = 0] = write(`declare const failure: ApiClientError;\nfailure.${MARK}code;`);
const [comparedCode = 0] = write(`failure.code === '${MARK}';`);
const [rehearsedCode = 0] = write(`createClient({ baseUrl: '', apiKey: '', rehearse: '${MARK}' });`);

function resolve(schema: Schema = {}): Schema {
  return schema.$ref === undefined ? schema : { ...components.schemas[refName(schema)], ...schema };
}

function refName({ $ref = '' }: Schema): string {
  return $ref.split('/').at(-1) ?? '';
}

/** Mentions every member of an object or of an array's objects, at any depth. */
function writeFields(schema: Schema | undefined, expression: string): Field[] {
  const { type, items, properties = {} } = resolve(schema);
  if (type === 'array') return writeFields(items, `${expression}[0]!`);
  return Object.entries(properties).flatMap(([name, member]) => {
    const [position = 0] = write(`${expression}.${MARK}${name};`);
    return [{ name, schema: member, position }, ...writeFields(member, `${expression}.${name}`)];
  });
}

function typeName(schema: Schema): string {
  const { type, items } = resolve(schema);
  return type === 'array' ? `${typeName(items ?? {})}[]` : refName(schema);
}

/** What the comment of a field has to say. */
function expectedTexts(schema: Schema): string[] {
  const { description = '', type, minimum, maximum, minLength, maxLength } = resolve(schema);
  const bounds =
    type === 'integer'
      ? [`from ${inWords(minimum)} to ${inWords(maximum)}.`]
      : maxLength === undefined
        ? []
        : [`${minLength} to ${maxLength}`];
  return [description.replace(/\.$/, ''), ...bounds];
}

function inWords(bound: number | undefined): string {
  const { MAX_SAFE_INTEGER: max } = Number;
  const words = new Map([
    [max, '2^53 − 1'],
    [-max, '−(2^53 − 1)'],
    [2 ** 31 - 1, '2^31 − 1'],
  ]);
  return words.get(bound ?? Number.NaN) ?? String(bound);
}

let front: InstalledPackage;
let editor: Editor;

vi.setConfig({ testTimeout: 120_000 });
beforeAll(async () => {
  front = await installPackage();
  editor = openEditor(front.project, code);
}, 240_000);
afterAll(() => front?.remove());

describe.each(operations)(
  'in an editor, $name',
  ({ name, operation, member, result, blank, output, ...rest }) => {
    const { inputs, outputs } = rest;
    const { summary, description, deprecated = false } = operation;

    test('shows what the document says of it, and what it takes and returns by name', () => {
      for (const { text, tags } of [editor.hover(member), editor.describe(member, name)]) {
        const paragraphs = description.split('\n\n').filter((each) => !each.startsWith('Deprecated: '));
        for (const paragraph of [summary, ...paragraphs]) expect(text).toContain(paragraph);
        const { maxItems } = resolve(output);
        expect(tags.get('returns')).toContain(maxItems === undefined ? '' : `At most ${maxItems} items`);
      }
      const { signature } = editor.hover(member);
      const inputName = operation.requestBody
        ? refName(operation.requestBody.content['application/json'].schema)
        : `${name.slice(0, 1).toUpperCase()}${name.slice(1)}Input`;
      if (inputs.length > 0) expect(signature).toMatch(new RegExp(`input: .*\\b${inputName}\\b`));
      expect(editor.hover(result).signature).toBe(`const ${name}Result: ${typeName(output ?? {})}`);
    });

    test(`is ${deprecated ? 'struck through, with its date and its successor' : 'not struck through'}`, () => {
      expect(editor.complete(member)).toContainEqual({ name, isDeprecated: deprecated });
      const marked = editor.listDeprecated().filter((each) => each === name);
      // Twice: one call with every member of the input, and one for the completion list.
      expect(marked).toHaveLength(deprecated ? 2 : 0);
      const tag = editor.hover(member).tags.get('deprecated');
      if (!deprecated) return expect(tag).toBeUndefined();
      const [, verb = '', path = ''] = /Use `([A-Z]+) (\S+)` instead/.exec(description) ?? [];
      expect(tag).toContain(operation['x-sunset']);
      expect(tag).toContain(`Use \`${paths[path]?.[verb.toLowerCase()]?.operationId}\` instead`);
    });

    test('completes and explains the members of its input, with their bounds and defaults', () => {
      const offered = inputs.length === 0 ? [] : editor.complete(blank).map((each) => each.name);
      expect(offered.sort()).toEqual(inputs.map((each) => each.name).sort());
      for (const { name: field, schema, position } of inputs) {
        const shown = [editor.hover(position), editor.describe(blank, field)];
        for (const { text, tags } of shown) {
          for (const expected of expectedTexts(schema)) expect(text).toContain(expected);
          expect(tags.get('default')).toBe(schema.default === undefined ? undefined : String(schema.default));
        }
      }
    });

    test('completes and explains the members of its output, at any depth, with their bounds', () => {
      for (const { name: field, schema, position } of outputs) {
        const { text, signature } = editor.hover(position);
        for (const expected of expectedTexts(schema)) expect(text).toContain(expected);
        expect(editor.describe(position, field).text).toBe(text);
        if (schema.$ref) expect(signature).toMatch(new RegExp(`: ${refName(schema)}$`));
      }
    });
  },
);

test('the editor completes exactly the operations of the document, the pages and the limits', () => {
  const [first] = operations;
  const names = editor.complete(first?.member ?? 0).map((each) => each.name);
  expect(names.sort()).toEqual([...operations.map(({ name }) => name), 'listAllPets', 'limits'].sort());
});

test('the error codes have one name, and are completed where one is compared or rehearsed', () => {
  const codes = components.schemas.Error?.properties?.code?.enum ?? [];
  expect(codes.length).toBeGreaterThan(0);
  expect(editor.hover(errorCode).signature).toBe('(property) ApiClientError.code: ErrorCode');
  for (const position of [comparedCode, rehearsedCode]) {
    expect(
      editor
        .complete(position)
        .map(({ name }) => name)
        .sort(),
    ).toEqual([...codes].sort());
  }
  const listed = editor
    .listExports(join(front.installed, 'dist/create-client.d.ts'))
    .find(({ name }) => name === 'ErrorCode');
  for (const each of codes) expect(listed?.text).toContain(`\`${each}\` (`);
});

test('everything that the package exports is explained, and so is each of its members', () => {
  const exported = editor.listExports(join(front.installed, 'dist/create-client.d.ts'));
  const named = Object.entries(components.schemas).filter(
    ([name, { type }]) => type !== 'array' && name !== 'Error',
  );
  expect(exported.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      ...named.map(([name]) => name),
      'ErrorBody',
      'ErrorCode',
      'ClientOptions.rehearse',
    ]),
  );
  expect(exported.filter(({ text }) => text === '').map(({ name }) => name)).toEqual([]);
});

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Editor, openEditor } from './editor.js';
import {
  code,
  comparedCode,
  components,
  errorCode,
  errorCodes,
  operations,
  paths,
  refName,
  rehearsedCode,
  resolve,
  type Schema,
} from './editor-code.js';
import { type InstalledPackage, installPackage } from './installed-package.js';

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
        const { maxItems } = resolve(output);
        const paragraphs = description
          .split('\n\n')
          .filter((each) => !each.startsWith('Deprecated: ') && !each.includes('`Link`'));
        for (const paragraph of [summary, ...paragraphs]) expect(text).toContain(paragraph);
        // Over REST the next page is in a header that tRPC does not have.
        expect(text).not.toContain('`Link`');
        expect(text.includes('`nextCursor(page)`')).toBe(maxItems !== undefined);
        expect(tags.get('returns')).toContain(maxItems === undefined ? '' : `At most ${maxItems} items`);
      }
      const { signature } = editor.hover(member);
      // What has a path, too, is more than its body.
      const isBody = operation.requestBody && !operation.parameters?.some((each) => each.in === 'path');
      const inputName = isBody
        ? refName(operation.requestBody.content['application/json'].schema)
        : `${name.slice(0, 1).toUpperCase()}${name.slice(1)}Input`;
      if (inputs.length > 0) expect(signature).toMatch(new RegExp(`input: .*\\b${inputName}\\b`));
      expect(editor.hover(result).signature).toBe(
        `const ${name}Result: ${output ? typeName(output) : 'undefined'}`,
      );
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

test('the editor completes exactly the operations of the document, and the limits', () => {
  const [first] = operations;
  const names = editor.complete(first?.member ?? 0).map((each) => each.name);
  expect(names.sort()).toEqual([...operations.map(({ name }) => name), 'limits'].sort());
});

test('the error codes have one name, and are completed where one is compared or rehearsed', () => {
  expect(errorCodes.length).toBeGreaterThan(0);
  expect(editor.hover(errorCode).signature).toBe('(property) ApiClientError.code: ErrorCode');
  for (const position of [comparedCode, rehearsedCode]) {
    expect(
      editor
        .complete(position)
        .map(({ name }) => name)
        .sort(),
    ).toEqual([...errorCodes].sort());
  }
  const listed = editor
    .listExports(join(front.installed, 'dist/create-client.d.ts'))
    .find(({ name }) => name === 'ErrorCode');
  for (const each of errorCodes) expect(listed?.text).toContain(`\`${each}\` (`);
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

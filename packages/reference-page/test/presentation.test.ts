import { readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

interface Operation {
  readonly 'x-badges': readonly { readonly name: string }[];
  readonly 'x-stability': string;
}

const module = await import(pathToFileURL('packages/reference-page/src/presentation.js').href);

/** A document as the service serves it, and as readers see it. */
async function present(path: string) {
  const source = JSON.parse(await readFile(path, 'utf8'));
  const shown = structuredClone(source);
  module.prepareForReaders(shown);
  return { source, shown };
}

test('patterns are left out, and the bounds of integers are words after the description', async () => {
  const { source, shown } = await present('packages/compatibility/test/released.json');
  const text = JSON.stringify(shown);
  expect(JSON.stringify(source)).toMatch(/"pattern":/);
  expect(text).not.toMatch(/"(pattern|minimum|maximum)":/);
  expect(text).not.toContain('9007199254740991');
  const [limit] = shown.paths['/pets'].get.parameters;
  expect(limit.description).toBe('Maximum number of items to return. An integer from 1 to 100.');
  const { id, categoryId } = shown.components.schemas.Pet.properties;
  expect(id.description).toMatch(/^Unique identifier.*increasing\. An integer from 1 to 2\^53 − 1\.$/);
  expect(categoryId.description).toMatch(/\. An integer from −\(2\^53 − 1\) to 2\^53 − 1\.$/);
});

test('every operation has its stability as a badge', async () => {
  const { shown } = await present('docs/openapi.json');
  const operations = Object.values<Record<string, Operation>>(shown.paths).flatMap(Object.values<Operation>);
  expect(operations.length).toBeGreaterThan(0);
  for (const operation of operations) expect(operation['x-badges'][0]?.name).toBe(operation['x-stability']);
});

test('the description of getKey leads to the page of a key, and the served document does not', async () => {
  const { source, shown } = await present('docs/openapi.json');
  expect(source.paths['/key'].get.description).not.toContain('docs/key');
  expect(shown.paths['/key'].get.description).toContain('(docs/key)');
});

test('the menu has the introduction and the operations before everything else', () => {
  const document: Record<string, unknown> = { tags: [{ name: 'Pets' }, { name: 'Orders' }] };
  module.orderMenu(document, 'store');
  expect(document['x-scalar-order']).toEqual([
    'store/description/introduction',
    'store/tag/pets',
    'store/tag/orders',
  ]);
});

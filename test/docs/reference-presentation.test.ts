import { readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

const module = await import(pathToFileURL('src/docs/page/presentation.js').href);
const source = JSON.parse(await readFile('docs/openapi.json', 'utf8'));
const shown = structuredClone(source);
module.prepareForReaders(shown);

test('patterns are left out, and the bounds of integers are words after the description', () => {
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

test('every operation has its stability as a badge', () => {
  const badges = Object.values<Record<string, object>>(shown.paths).flatMap((item) =>
    Object.values(item).map((operation) => Reflect.get(operation, 'x-badges')[0].name),
  );
  expect(badges).toEqual(['stable', 'stable', 'stable', 'experimental']);
});

test("the page's colours and its sign are those of the storefront", async () => {
  const page = await readFile('src/docs/page/page.css', 'utf8');
  const storefront = await readFile('examples/storefront/src/tokens.css', 'utf8');
  const pairs = page.match(/--[\w-]+: light-dark\(.*?\);/g) ?? [];
  expect(pairs.length).toBeGreaterThan(10);
  expect(pairs.filter((pair) => !storefront.includes(pair))).toEqual([]);
  const icons = ['src/docs/page/icon.svg', 'examples/storefront/icon.svg'];
  const [own, shared] = await Promise.all(icons.map((path) => readFile(path, 'utf8')));
  expect(own).toBe(shared);
});

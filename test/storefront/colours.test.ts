import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

test("the reference page's colours and its sign are those of the storefront", async () => {
  const page = await readFile('packages/reference-page/src/theme.css', 'utf8');
  const storefront = await readFile('examples/storefront/src/tokens.css', 'utf8');
  const pairs = page.match(/--[\w-]+: light-dark\(.*?\);/g) ?? [];
  expect(pairs.length).toBeGreaterThan(10);
  expect(pairs.filter((pair) => !storefront.includes(pair))).toEqual([]);
  const icons = ['docs/icon.svg', 'examples/storefront/icon.svg'];
  const [own, shared] = await Promise.all(icons.map((path) => readFile(path, 'utf8')));
  expect(own).toBe(shared);
});

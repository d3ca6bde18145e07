import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { definition } from '../../src/definition/definition.js';

const DIST = 'packages/platform/dist';

test('the packed declarations have nothing of a store, nor a package that a store would have to bring', () => {
  const paths = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.d.ts'),
  );
  expect(paths.length).toBeGreaterThan(100);
  const words = [
    ...definition.scopes,
    ...Object.keys(definition.errors),
    definition.identity.title,
    '@animal-store/definition',
  ];
  for (const path of paths) {
    const code = readFileSync(join(DIST, path), 'utf8').replaceAll(/\/\*.*?\*\//gs, '');
    expect([path, words.filter((word) => code.includes(word))]).toEqual([path, []]);
  }
});

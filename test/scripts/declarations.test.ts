import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERRORS } from '@animal-store/definition/errors';
import { IDENTITY } from '@animal-store/definition/identity';
import { PLAN_NAMES, WINDOWS } from '@animal-store/definition/plans';
import { SCOPES } from '@animal-store/definition/scopes';
import { expect, test } from 'vitest';

const DIST = 'packages/platform/dist';

test('the packed declarations refer to the definition of a store, and repeat nothing of the one that they were built with', () => {
  const paths = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.d.ts'),
  );
  expect(paths.length).toBeGreaterThan(100);
  const words = [
    ...[...SCOPES, ...PLAN_NAMES, ...WINDOWS.map(({ name }) => name)].flatMap((word) => [
      `"${word}"`,
      `'${word}'`,
    ]),
    ...Object.keys(ERRORS),
    ...[`${IDENTITY.keyPrefix}live_`, `${IDENTITY.keyPrefix}test_`, IDENTITY.title, IDENTITY.metricsPrefix],
  ];
  expect(words.length).toBeGreaterThan(15);
  let references = 0;
  for (const path of paths) {
    const text = readFileSync(join(DIST, path), 'utf8');
    references += text.split('@animal-store/definition/').length - 1;
    const code = text.replaceAll(/\/\*.*?\*\//gs, '');
    expect([path, words.filter((word) => code.includes(word))]).toEqual([path, []]);
  }
  expect(references).toBeGreaterThan(10);
});

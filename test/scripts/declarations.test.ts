import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { definition } from '../../src/definition/definition.js';

/** The declarations below a folder, without their comments */
function readDeclarations(folder: string): Map<string, string> {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.d.ts'),
  );
  return new Map(
    paths.map((path) => [path, readFileSync(join(folder, path), 'utf8').replaceAll(/\/\*.*?\*\//gs, '')]),
  );
}

test('the packed declarations of the platform have nothing of a store', () => {
  const declarations = readDeclarations('packages/platform/dist');
  expect(declarations.size).toBeGreaterThan(100);
  const { identity, plans, windows, scopes, errors } = definition;
  const quoted = [...scopes, ...Object.keys(plans), ...windows.map(({ name }) => name)];
  const words = [
    ...quoted.flatMap((word) => [`"${word}"`, `'${word}'`]),
    ...Object.keys(errors),
    ...[`${identity.keyPrefix}live_`, `${identity.keyPrefix}test_`, identity.title, identity.metricsPrefix],
  ];
  expect(words.length).toBeGreaterThan(15);
  for (const [path, code] of declarations)
    expect([path, words.filter((word) => code.includes(word))]).toEqual([path, []]);
});

test('the declarations of the store can be written, and name what the platform exports', async () => {
  const folder = await createTemporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  const tsc = resolve('node_modules/typescript-native/bin/tsc');
  const written = ['--declaration', '--emitDeclarationOnly', '--outDir', folder];
  execFileSync(process.execPath, [
    tsc,
    '-p',
    '.',
    '--incremental',
    'false',
    '--tsBuildInfoFile',
    'null',
    ...written,
  ]);
  const declarations = readDeclarations(folder);
  expect(declarations.get('router.d.ts')).toContain('AppRouter');
  const named = [...declarations.values()].flatMap((code) => code.match(/@animal-store\/[^"']+/g) ?? []);
  expect(named.length).toBeGreaterThan(10);
  // Rooms, as the exports of the package have them, and no file of one
  expect(named.filter((module) => !/^@animal-store\/platform\/[a-z-]+$/.test(module))).toEqual([]);
}, 30_000);

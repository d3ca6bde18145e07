import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test, vi } from 'vitest';
import { createDirectory, isRunning } from './support.js';

/** Packing, and an installation from the registry */
const TIMEOUT_MS = 180_000;
vi.setConfig({ testTimeout: TIMEOUT_MS, hookTimeout: TIMEOUT_MS });

const PACKAGE = dirname(import.meta.dirname);
const REPOSITORY = join(PACKAGE, '../..');
const run = promisify(execFile);
const readme = await readFile(join(PACKAGE, 'README.md'), 'utf8');
const [, example = ''] = /```js\n(.+?)```/s.exec(readme) ?? [];

/** A TypeScript program with everything that the package exports. */
const PROGRAM = `
import { createEmbeddedPostgres, EmbeddedPostgresError } from '@animal-store/embedded-postgres';
import type { EmbeddedPostgres, EmbeddedPostgresErrorCode, EmbeddedPostgresOptions, Mode } from '@animal-store/embedded-postgres';

const mode: Mode = 'exclusive';
const options: EmbeddedPostgresOptions = { dataDir: 'data', database: 'shop', mode, onError: (error: Error) => error.message };
const open = (): Promise<EmbeddedPostgres> => createEmbeddedPostgres(options);
export const codeOf = (error: unknown): EmbeddedPostgresErrorCode | undefined =>
  error instanceof EmbeddedPostgresError ? error.code : undefined;
export const url: string = (await open()).url;
`;

test('a new project can install the packed package, and its README runs there as it says', async () => {
  const folder = await createDirectory();
  const project = join(folder, 'project');
  await mkdir(project);
  // As npm init -y writes it
  await writeFile(
    join(project, 'package.json'),
    '{ "name": "project", "version": "1.0.0", "type": "commonjs" }',
  );
  // npm hands the settings of this repository on to its scripts; the project has npm's own.
  const settings = ['--legacy-peer-deps=false', '--prefer-offline', '--no-audit', '--no-fund'];
  await run('npm', ['install', ...settings, await pack(join(folder, 'sources')), 'pg'], { cwd: project });
  expect(await readdir(join(project, 'node_modules/@animal-store'))).toEqual(['embedded-postgres']);

  await writeFile(join(project, 'shop.mjs'), example);
  for (const count of [1, 2]) {
    const { stdout } = await run(process.execPath, ['shop.mjs'], { cwd: project });
    expect(stdout.match(/name: 'lamp'/g)).toHaveLength(count);
    expect(isRunning(join(project, '.data'))).toBe(false);
  }

  await writeFile(join(project, 'program.mts'), PROGRAM);
  const options = ['--module', 'nodenext', '--target', 'es2023', '--strict', '--noEmit'];
  const compiler = join(REPOSITORY, 'node_modules/typescript/bin/tsc');
  await run(process.execPath, [compiler, ...options, 'program.mts'], { cwd: project });
});

/** Packs a copy, which proves that it needs nothing else, and leaves the files of other tests alone. */
async function pack(copy: string): Promise<string> {
  const folder = join(copy, 'packages/embedded-postgres');
  const filter = (path: string) => !/\/(dist|node_modules)$/.test(path);
  await cp(PACKAGE, folder, { recursive: true, filter });
  await cp(join(REPOSITORY, 'tsconfig.base.json'), join(copy, 'tsconfig.base.json'));
  await symlink(join(REPOSITORY, 'node_modules'), join(copy, 'node_modules'));
  const { stdout } = await run('npm', ['pack', '--silent'], { cwd: folder });
  return join(folder, stdout.trim());
}

test('the package says nothing of the service that it comes from, except in names', async () => {
  const sources = (await readdir(join(PACKAGE, 'src'))).map((name) => join(PACKAGE, 'src', name));
  for (const path of [join(PACKAGE, 'README.md'), ...sources]) {
    const text = (await readFile(path, 'utf8')).replaceAll(/@?animal-store[/-]/g, '');
    expect(text.match(/\b(animal|pet)s?\b/gi) ?? [], path).toEqual([]);
  }
});

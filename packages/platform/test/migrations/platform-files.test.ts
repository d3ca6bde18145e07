import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { definition } from '#operations-under-test';
import { prismaFolderOf } from '../../src/migrations/migrations.js';
import { copyPlatformFiles, listMissing } from '../../src/migrations/platform-files.js';

const OWN = 'packages/platform/prisma';
const names = (await readdir(join(OWN, 'migrations'))).sort();

let folder: string;
beforeEach(async () => {
  folder = await createTemporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
});

test('a folder gets the migrations that it lacks, and the models with the plans and scopes of its store', async () => {
  expect(names.length).toBeGreaterThan(2);
  const migrations = names.map((name) => `migrations/${name}`);
  expect(await copyPlatformFiles(folder, definition)).toEqual([...migrations, 'platform.prisma']);
  for (const name of names) {
    const file = join('migrations', name, 'migration.sql');
    expect(await readFile(join(folder, file), 'utf8')).toBe(await readFile(join(OWN, file), 'utf8'));
  }
  const models = await readFile(join(folder, 'platform.prisma'), 'utf8');
  expect(models).toContain(`@default([${definition.scopes.map((scope) => `"${scope}"`).join(', ')}])`);
  expect(models).toContain(
    `enum Plan {\n${Object.keys(definition.plans)
      .map((plan) => `  ${plan}\n`)
      .join('')}`,
  );
  expect(await copyPlatformFiles(folder, definition)).toEqual([]);
});

test("the default of a key's scopes is that of the store, where it has one", async () => {
  const { scopes } = definition;
  await copyPlatformFiles(folder, { ...definition, defaultScopes: [scopes[0]] });
  const models = await readFile(join(folder, 'platform.prisma'), 'utf8');
  expect(models).toContain(`@default(["${scopes[0]}"])`);
});

test('what a folder has under the name of a migration stays as it is; changed models are written anew', async () => {
  await copyPlatformFiles(folder, definition);
  const [kept = '', lost = ''] = names;
  await writeFile(join(folder, 'migrations', kept, 'migration.sql'), '-- of the store');
  await rm(join(folder, 'migrations', lost), { recursive: true });
  await mkdir(join(folder, 'migrations', '20990101000000_boats'));
  await writeFile(join(folder, 'platform.prisma'), '// edited');
  expect(await listMissing(join(folder, 'migrations'))).toEqual([lost]);
  expect(await copyPlatformFiles(folder, definition)).toEqual([`migrations/${lost}`, 'platform.prisma']);
  expect(await readFile(join(folder, 'migrations', kept, 'migration.sql'), 'utf8')).toBe('-- of the store');
});

test('a checkout with line ends of Windows has the models', async () => {
  await copyPlatformFiles(folder, definition);
  const path = join(folder, 'platform.prisma');
  await writeFile(path, (await readFile(path, 'utf8')).replaceAll('\n', '\r\n'));
  expect(await copyPlatformFiles(folder, definition)).toEqual([]);
});

test('the store of this checkout has what the platform brings: npm run platform', async () => {
  expect(await listMissing(join(prismaFolderOf(definition.root), 'migrations'))).toEqual([]);
  await copyPlatformFiles(folder, definition);
  const read = (path: string) => readFile(join(path, 'platform.prisma'), 'utf8');
  expect(await read(prismaFolderOf(definition.root))).toBe(await read(folder));
});

test('the migrations of the platform name neither a scope nor a plan of a store', async () => {
  for (const name of names) {
    const sql = await readFile(join(OWN, 'migrations', name, 'migration.sql'), 'utf8');
    // Comments may give examples.
    const statements = sql.replaceAll(/--.*$/gm, '');
    for (const word of [...definition.scopes, ...Object.keys(definition.plans)])
      expect(statements, name).not.toContain(`'${word}'`);
  }
});

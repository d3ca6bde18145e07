import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createTemporaryFolder, runNode } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { linkPackages } from '../../../scripts/upgrade/previous-version.js';

const TIMEOUT_MS = 600_000;
let folder: string;
let clone: string;

beforeAll(async () => {
  folder = await createTemporaryFolder();
  clone = join(folder, 'clone');
  execFileSync('git', ['clone', '--quiet', '--depth', '1', `file://${resolve('.')}`, clone]);
  await linkPackages(resolve('node_modules'), clone);
  execFileSync(process.execPath, ['scripts/build.js'], { cwd: clone, stdio: 'pipe' });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Checks the upgrade from the commit of the clone to what is in its folder. */
function check() {
  const script = ['--conditions=@animal-store/source', '--import', 'tsx', 'scripts/upgrade/check.ts'];
  return runNode([...script, 'HEAD'], { TMPDIR: folder }, clone);
}

async function addMigration(name: string, sql: string): Promise<void> {
  const path = join(clone, 'prisma/migrations', name);
  await mkdir(path);
  await writeFile(join(path, 'migration.sql'), sql);
}

const listTraces = async () =>
  (await readdir(folder)).filter((name) => name.startsWith('animal-store-upgrade-'));

test('an upgrade whose database the previous version copes with is accepted', {
  timeout: TIMEOUT_MS,
}, async () => {
  await addMigration('29990101000000_returned', `ALTER TYPE "order_status" ADD VALUE 'returned'`);
  // What the new version writes
  const written = `UPDATE "orders" SET "status" = 'returned' WHERE "status" = 'cancelled';`;
  await appendFile(join(clone, 'prisma/seed.sql'), written);
  const program = check();
  expect([await program.ended, program.output()]).toEqual([
    0,
    expect.stringContaining('run on the database'),
  ]);
  expect(await listTraces()).toEqual([]);
});

test('a constraint that only the new version keeps is refused, with the operation that fails', {
  timeout: TIMEOUT_MS,
}, async () => {
  const path = join(clone, 'src/pets/schema.ts');
  const source = await readFile(path, 'utf8');
  // What the document of the previous version has as its example
  await writeFile(path, source.replace("name: 'Rex'", "name: 'Max'"));
  execFileSync(process.execPath, ['scripts/build.js'], { cwd: clone, stdio: 'pipe' });
  await addMigration(
    '29990101000100_not_rex',
    `ALTER TABLE "pets" ADD CONSTRAINT "pets_not_rex" CHECK ("name" <> 'Rex')`,
  );
  const program = check();
  const code = await program.ended;
  expect([code, program.output()]).toEqual([
    1,
    expect.stringMatching(/^the previous version: createPet: .*pets_not_rex/m),
  ]);
  expect(program.output()).not.toMatch(/^this version/m);
  expect(await listTraces()).toEqual([]);
});

test('an interrupted check leaves nothing behind', { timeout: TIMEOUT_MS }, async () => {
  const program = check();
  await program.until(/Building/);
  program.child.kill('SIGINT');
  expect(await program.ended).toBe(1);
  expect(await listTraces()).toEqual([]);
});

import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder, runCommand } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createStore, npm, readManifest } from './support/packed-store.js';

const TIMEOUT_MS = 600_000;
/** The package managers beside npm, and the package of each */
const MANAGERS = [
  { manager: 'pnpm', packageName: 'pnpm@12.21.0', install: ['install'] },
  // In CI it makes no lock file unasked.
  { manager: 'yarn', packageName: '@yarnpkg/cli-dist@4.18.1', install: ['install', '--no-immutable'] },
] as const;

let folder: string;

beforeAll(async () => {
  folder = await createTemporaryFolder();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test.each(MANAGERS)(
  'a store made for $manager is installed by it, and passes its tests under it',
  { timeout: TIMEOUT_MS },
  async ({ manager, packageName, install }) => {
    const store = join(folder, manager);
    await createStore(store, '--package-manager', manager);
    const run = (...args: string[]) =>
      npm(store, 'exec', '--yes', `--package=${packageName}`, '--', manager, ...args);
    run(...install);
    expect(run('test')).toMatch(/Tests .*\d+ passed/);
  },
);

/** Runs the command. Resolves with its exit code and what it says. */
async function create(...args: string[]) {
  const program = runCommand(process.execPath, ['scripts/create.js', ...args], { INIT_CWD: folder });
  return [await program.ended, program.output()];
}

test('the folder names a store, and flags name it otherwise: its package, its title and how its keys begin', async () => {
  const definitionOf = (store: string) => readFile(join(folder, store, 'src/definition.ts'), 'utf8');
  expect(await create('Cat Hotel')).toEqual([
    0,
    expect.stringContaining("cd 'Cat Hotel'\n  npm install\n  npm start\n"),
  ]);
  for (const text of ["'cat-hotel'", "'Cat Hotel Service'", "'ch_'", "'cat_hotel_'", "'cat_hotel'"])
    expect(await definitionOf('Cat Hotel')).toContain(text);
  const flags = ['--name', 'kennel', '--title', 'The "Kennel"', '--key-prefix', 'k_'];
  expect((await create('dogs', ...flags))[0]).toBe(0);
  for (const text of ["'kennel'", `'The "Kennel"'`, "'k_'"])
    expect(await definitionOf('dogs')).toContain(text);
  expect(await readManifest(join(folder, 'dogs/package.json'))).toMatchObject({ name: 'kennel' });
  const readme = await readFile(join(folder, 'dogs/README.md'), 'utf8');
  expect(readme).toContain("from 'kennel'");
  expect(readme).not.toContain('boatyard');
});

test('in the folder of a store it replaces the packages, and nothing else', async () => {
  const store = join(folder, 'changed');
  await create('changed');
  const manifest = await readFile(join(store, 'package.json'), 'utf8');
  const [packed = ''] = await readdir(join(store, 'packages'));
  await writeFile(join(store, 'packages', packed), 'an older version');
  await writeFile(join(store, 'package.json'), manifest.replace(/("zod": )"[^"]+"/, '$1"4.5.0"'));
  await writeFile(join(store, 'src/definition.ts'), '// mine');
  expect(await create('changed')).toEqual([0, expect.stringContaining('npm run platform')]);
  expect(await readFile(join(store, 'src/definition.ts'), 'utf8')).toBe('// mine');
  expect(await readFile(join(store, 'package.json'), 'utf8')).toBe(
    manifest.replace(/("zod": )"[^"]+"/, '$1"4.5.0"'),
  );
  expect((await readFile(join(store, 'packages', packed))).subarray(0, 2)).toEqual(Buffer.from([0x1f, 0x8b]));
});

test.each([
  [[], /^Name one folder\./],
  [['a', 'b'], /^Name one folder\./],
  [['a', '--colour', 'red'], /^Unknown option '--colour'/],
  [['1-2-3'], /^--name must be lower case with hyphens, and is ""\./],
  [['a', '--key-prefix', 'Key_'], /^--key-prefix must be lower case with an underscore at its end/],
  [['a', '--title', "It's"], /^--title must be a line without/],
  [['a', '--package-manager', 'bun'], /^--package-manager must be one of npm, pnpm, yarn/],
  [['/'], /is not empty, and no store: name a folder that does not exist yet\./],
] as const)('%j makes nothing, and says why in a sentence', async (args, message) => {
  expect(await create(...args)).toEqual([1, expect.stringMatching(message)]);
  await expect(readdir(join(folder, 'a'))).rejects.toThrow('ENOENT');
});

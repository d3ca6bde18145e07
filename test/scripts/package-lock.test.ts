import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  /** Of a package of this repository, whose `resolved` is its folder */
  readonly link?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const lock: { readonly packages: Readonly<Record<string, LockedPackage>> } = JSON.parse(
  await readFile('package-lock.json', 'utf8'),
);
const packages = Object.entries(lock.packages);

test('every locked package has its checksum, and none names a registry', () => {
  const downloaded = packages.filter(([path, { link }]) => path.includes('node_modules/') && !link);
  expect(downloaded.length).toBeGreaterThan(100);
  // An entry without a checksum was not written by npm, which skips it where it cannot install it.
  expect(
    downloaded.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([path]) => path),
  ).toEqual([]);
  expect(downloaded.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([]);
});

test('every optional package is locked, those for other platforms too', () => {
  const wanted = packages.flatMap(([path, { optionalDependencies = {} }]) =>
    Object.entries(optionalDependencies).map(([name, version]) => ({ path, name, version })),
  );
  expect(wanted.length).toBeGreaterThan(50);
  const unlocked = wanted.filter(({ path, name }) => findLocked(path, name) === undefined);
  expect(unlocked, 'write package-lock.json anew in a folder without node_modules').toEqual([]);
});

test('the packages of a production install satisfy each other, as peers too', async () => {
  // .npmrc keeps npm from adding peers, and so from checking them.
  const args = ['ls', '--all', '--omit=dev', '--package-lock-only', '--legacy-peer-deps=false'];
  await promisify(execFile)('npm', args, { maxBuffer: 2 ** 26 });
});

/** Looks a package up the way Node.js does: in the node_modules of the folder and of each one above it. */
function findLocked(path: string, name: string): LockedPackage | undefined {
  const found = lock.packages[`${path === '' ? '' : `${path}/`}node_modules/${name}`];
  if (found !== undefined || path === '') return found;
  return findLocked(path.slice(0, Math.max(path.lastIndexOf('/'), 0)), name);
}

test('another package manager, which would look for our own packages at its registry, refuses this repository', async () => {
  const { packageManager, workspaces } = JSON.parse(await readFile('package.json', 'utf8'));
  expect(packageManager).toMatch(/^npm@\d+\.\d+\.\d+$/);
  const ranges: string[] = [];
  for (const folder of ['.', ...workspaces]) {
    const { dependencies, devDependencies } = JSON.parse(await readFile(`${folder}/package.json`, 'utf8'));
    for (const [name, range] of Object.entries<string>({ ...dependencies, ...devDependencies }))
      if (name.startsWith('@animal-store/')) ranges.push(range);
  }
  // A range such as * would be satisfied by whatever anybody registers under the name.
  expect(ranges.length).toBeGreaterThan(1);
  for (const range of ranges) expect(range).toMatch(/^file:packages\/[\w-]+$/);
});

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  /** Of a package of this repository, whose `resolved` is its folder */
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

type Packages = Readonly<Record<string, LockedPackage>>;

/** Of the root, and of the folders whose packages are installed when they are needed */
const LOCKS = ['package-lock.json', ...listLocks(['scripts', 'bench', 'examples'])];

async function readPackages(lock: string): Promise<Packages> {
  const { packages }: { packages: Packages } = JSON.parse(await readFile(lock, 'utf8'));
  return packages;
}

describe.each(LOCKS)('%s', async (lock) => {
  const packages = await readPackages(lock);
  const entries = Object.entries(packages);

  test('every locked package has its checksum, and none names a registry', () => {
    const downloaded = entries.filter(([path, { link }]) => path.includes('node_modules/') && !link);
    expect(downloaded).not.toEqual([]);
    // An entry without a checksum was not written by npm, which skips it where it cannot install it.
    expect(
      downloaded.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([path]) => path),
    ).toEqual([]);
    expect(downloaded.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([]);
  });

  test('every optional package is locked, those for other platforms too', () => {
    const wanted = entries.flatMap(([path, { optionalDependencies = {} }]) =>
      Object.entries(optionalDependencies).map(([name, version]) => ({ path, name, version })),
    );
    const unlocked = wanted.filter(({ path, name }) => findLocked(packages, path, name) === undefined);
    expect(unlocked, 'write package-lock.json anew in a folder without node_modules').toEqual([]);
  });

  test('no machine fetches binaries for the C library of others', () => {
    const ofOneLibrary = entries.filter(
      ([path, { os }]) => os?.includes('linux') && /-(?:musl|gnu)$/.test(path),
    );
    const unmarked = ofOneLibrary.filter(([, { libc }]) => libc === undefined).map(([path]) => path);
    expect(unmarked, 'have npm write these entries with --before').toEqual([]);
  });

  test('is scanned for advisories, and installed by the oldest Node.js in CI', async () => {
    expect(await readFile('.github/workflows/advisories.yml', 'utf8')).toContain(`--lockfile=./${lock}\n`);
    const [, folders = ''] = /^for folder in (.*); do$/m.exec(await readFile('.ci/run', 'utf8')) ?? [];
    expect(folders.split(' ')).toContain(dirname(lock));
  });
});

test('npm ci at the root installs at most 420 packages', async () => {
  const packages = Object.entries(await readPackages('package-lock.json'));
  const installed = packages.filter(([path, { link, os, cpu, libc }]) => {
    const isForLinux = [os?.includes('linux'), cpu?.includes('x64'), libc?.includes('glibc')].every(
      (fits) => fits ?? true,
    );
    return path.includes('node_modules/') && !link && isForLinux;
  });
  expect(installed.length, 'what only checks, bench or storefront need has its place there').toBeLessThan(
    421,
  );
});

test('the packages of a production install satisfy each other, as peers too', async () => {
  const packages = await readPackages('package-lock.json');
  // .npmrc keeps npm from adding peers, and so from checking them.
  const args = ['ls', '--all', '--omit=dev', '--package-lock-only', '--legacy-peer-deps=false', '--json'];
  const { stdout } = spawnSync('npm', args, { encoding: 'utf8', maxBuffer: 2 ** 26 });
  const { problems = [], dependencies }: { problems?: string[]; dependencies: object } = JSON.parse(stdout);
  expect(dependencies).toHaveProperty(['@animal-store/platform', 'dependencies', 'fastify']);
  // It follows the peers that are not installed, such as Prisma's command line, to what those need.
  const isInstalled = (problem: string) => {
    const [, name = ''] = /required by (.+)@/.exec(problem) ?? [];
    return !packages[`node_modules/${name}`]?.dev;
  };
  expect(problems.filter(isInstalled)).toEqual([]);
});

function listLocks(folders: readonly string[]): string[] {
  return folders
    .flatMap((folder) => [folder, ...readdirSync(folder).map((name) => join(folder, name))])
    .map((folder) => join(folder, 'package-lock.json'))
    .filter((path) => existsSync(path));
}

/** Looks a package up the way Node.js does: in the node_modules of the folder and of each one above it. */
function findLocked(packages: Packages, path: string, name: string): LockedPackage | undefined {
  const found = packages[`${path === '' ? '' : `${path}/`}node_modules/${name}`];
  if (found !== undefined || path === '') return found;
  return findLocked(packages, path.slice(0, Math.max(path.lastIndexOf('/'), 0)), name);
}

test('another package manager, which would look for our own packages at its registry, refuses this repository', async () => {
  const { packageManager, workspaces } = JSON.parse(await readFile('package.json', 'utf8'));
  expect(packageManager).toMatch(/^npm@\d+\.\d+\.\d+$/);
  const locked = await readPackages('package-lock.json');
  const ranges: string[] = [];
  for (const folder of ['.', ...workspaces]) {
    const { dependencies, devDependencies } = JSON.parse(await readFile(`${folder}/package.json`, 'utf8'));
    for (const [name, range] of Object.entries<string>({ ...dependencies, ...devDependencies }))
      if (name.startsWith('@animal-store/')) {
        ranges.push(range);
        expect(locked[`node_modules/${name}`], name).toMatchObject({ link: true });
      }
  }
  // A range such as * would be satisfied by whatever anybody registers under the name. A package that can be packed names
  // the one version of the other, to which npm links.
  expect(ranges.length).toBeGreaterThan(1);
  for (const range of ranges) expect(range).toMatch(/^file:packages\/[\w-]+$|^\d+\.\d+\.\d+$/);
});

test('what the packages need of others is installed at the root, in their version: dist/ has copies of them', async () => {
  const packages = await readPackages('package-lock.json');
  const { dependencies: ofRoot } = JSON.parse(await readFile('package.json', 'utf8'));
  const copied = ['platform', 'batch-loader', 'http-server', 'limits'];
  expect(Object.keys(ofRoot)).toEqual(expect.arrayContaining(['@animal-store/platform']));
  for (const name of copied) {
    const manifest = JSON.parse(await readFile(`packages/${name}/package.json`, 'utf8'));
    const needed = Object.entries<string>(manifest.dependencies ?? {});
    expect(needed.length > 0 || name === 'batch-loader').toBe(true);
    for (const [other, version] of needed) {
      const library = copied.find((each) => other === `@animal-store/${each}`);
      if (library === undefined) expect(packages[`node_modules/${other}`]).toMatchObject({ version });
      // In a production install as well
      expect(packages[`node_modules/${other}`]?.dev).toBeUndefined();
    }
  }
});

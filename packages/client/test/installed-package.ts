import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PACKAGE = 'packages/client';
export const run = promisify(execFile);

/**
 * What the build reads. Packing a copy proves that it needs nothing else, and leaves the files of other tests alone.
 */
const SOURCES = [
  'package.json',
  'tsconfig.base.json',
  'prisma.config.ts',
  'prisma',
  'src',
  'scripts',
  PACKAGE,
];

/** A front-end with the packed client as its only dependency. */
export interface InstalledPackage {
  readonly tarball: string;
  /** The folder of the front-end */
  readonly project: string;
  /** Where the package is in it */
  readonly installed: string;
  remove(): Promise<void>;
}

/** Packs the client, and installs the tarball in a temporary folder. */
export async function installPackage(): Promise<InstalledPackage> {
  const folder = await mkdtemp(join(tmpdir(), 'animal-store-package-'));
  const tarball = await pack(join(folder, 'sources'));
  const project = join(folder, 'front-end');
  await mkdir(project);
  await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  // npm hands the settings of this repository on to its scripts, but the front-end has npm's own: peers are installed.
  const settings = ['--legacy-peer-deps=false', '--prefer-offline', '--no-audit', '--no-fund'];
  await npm(project, 'install', ...settings, tarball);
  return {
    tarball,
    project,
    installed: join(project, 'node_modules/@animal-store/client'),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

async function pack(copy: string): Promise<string> {
  await mkdir(copy);
  const filter = (path: string) => !path.startsWith(join(ROOT, PACKAGE, 'dist'));
  for (const path of SOURCES) await cp(join(ROOT, path), join(copy, path), { recursive: true, filter });
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const { stdout } = await npm(copy, 'pack', '--silent', '--workspace', '@animal-store/client');
  for (const path of ['package.json', `${PACKAGE}/package.json`]) {
    expect(await readFile(join(copy, path), 'utf8')).toBe(await readFile(join(ROOT, path), 'utf8'));
  }
  return join(copy, stdout.trim());
}

function npm(cwd: string, ...args: string[]) {
  return run('npm', args, { cwd });
}

import { mkdir, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeUnshared } from '../src/shared-packages.js';
import { createFolder, write } from './support.js';

const PLATFORM = 'node_modules/@animal-store/platform';
const peers = { zod: '>=4.4.0 <4.7.0', prisma: '7.10.0' };
const manifest = (version: string, more = {}) => JSON.stringify({ version, ...more });

/** A store with the platform, and zod in a version */
async function createStore(version: string): Promise<string> {
  const folder = await createFolder();
  await write(folder, {
    [`${PLATFORM}/package.json`]: manifest('1.0.0', {
      peerDependencies: peers,
      peerDependenciesMeta: { prisma: { optional: true } },
    }),
    'node_modules/zod/package.json': manifest(version),
  });
  return folder;
}

test('a version within the range passes, with and without what is optional', async () => {
  for (const version of ['4.4.0', '4.6.7', '4.6.99']) {
    const folder = await createStore(version);
    expect(describeUnshared(folder)).toBeUndefined();
    await mkdir(join(folder, 'src'));
    expect(describeUnshared(join(folder, 'src'))).toBeUndefined();
  }
});

test('another version, one that is no release and none at all are named, with the command that helps', async () => {
  const install = 'npm install "zod@>=4.4.0 <4.7.0"';
  for (const version of ['3.25.76', '4.3.6', '4.7.0-beta.1', '4.7.0', '5.0.0'])
    expect(describeUnshared(await createStore(version))).toBe(
      `zod ${version} is installed, and @animal-store/platform 1.0.0 works with >=4.4.0 <4.7.0: ${install}`,
    );
  const folder = await createStore('4.6.7');
  await rm(join(folder, 'node_modules/zod'), { recursive: true });
  expect(describeUnshared(folder)).toBe(`zod is not installed: ${install}`);
});

test('what is tied to the version is to be installed with it', async () => {
  const folder = await createStore('4.7.0');
  await write(folder, {
    'package.json': manifest('1.0.0', {
      dependencies: { zod: '4.7.0', other: '4.7.0' },
      devDependencies: { tied: '1' },
    }),
    'node_modules/other/package.json': manifest('4.7.0', { peerDependencies: { zod: '^4.0.0' } }),
    'node_modules/tied/package.json': manifest('4.7.0', { peerDependencies: { zod: '4.7.0' } }),
  });
  expect(describeUnshared(folder)).toMatch(
    /: npm install "zod@>=4\.4\.0 <4\.7\.0" "tied@>=4\.4\.0 <4\.7\.0"$/,
  );
});

test.each([
  [PLATFORM, 'leave one with: npm dedupe'],
  ['linked', 'install it packed, not as a link: npm install FILE.tgz'],
])('a second copy is named, also of the same version: of a platform in %s', async (place, mend) => {
  const folder = await createStore('4.6.7');
  await write(folder, { [`${PLATFORM}/node_modules/zod/package.json`]: manifest('4.6.7') });
  if (place !== PLATFORM) {
    await rename(join(folder, PLATFORM), join(folder, place));
    await symlink(join(folder, place), join(folder, PLATFORM));
  }
  expect(describeUnshared(folder)).toBe(
    `zod 4.6.7 is installed, and @animal-store/platform has a copy of its own, 4.6.7 in ${place}/node_modules/zod: ${mend}`,
  );
});

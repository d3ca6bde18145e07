import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { afterAll, expect, test } from 'vitest';
import { findPrevious } from '../../../scripts/upgrade/previous-version.js';

const folder = await createTemporaryFolder();
afterAll(() => rm(folder, { recursive: true }));
const whole = join(folder, 'whole');
const shallow = join(folder, 'shallow');

function git(...args: readonly string[]): string {
  const identity = ['-c', 'user.name=test', '-c', 'user.email=test@example.org'];
  return execFileSync('git', [...identity, ...args], { cwd: folder, encoding: 'utf8', stdio: 'pipe' }).trim();
}
const commit = () => git('-C', whole, 'commit', '--quiet', '--allow-empty', '--message', 'A change');

test('the previous version is that of the last tag, and a clone without a tag has one only if it may lack it', () => {
  git('init', '--quiet', whole);
  commit();
  expect(findPrevious(undefined, whole)).toMatchObject({ commit: undefined, isKnown: true });
  git('-C', whole, 'tag', 'v1.0.0');
  const tagged = git('-C', whole, 'rev-parse', 'HEAD');
  expect(findPrevious(undefined, whole)).toMatchObject({ commit: undefined, isKnown: true });
  commit();
  git('-C', whole, 'tag', 'demo');
  expect(findPrevious(undefined, whole)).toEqual({ commit: tagged, name: 'v1.0.0' });
  git('-C', whole, 'tag', 'v1.1.0');
  expect(findPrevious(undefined, whole)).toEqual({ commit: tagged, name: 'v1.0.0' });
  expect(findPrevious('HEAD~1', whole)).toEqual({ commit: tagged, name: 'HEAD~1' });
  git('clone', '--quiet', '--depth', '1', `file://${whole}`, shallow);
  expect(findPrevious(undefined, shallow)).toMatchObject({ commit: undefined, isKnown: false });
});

test('a commit that is not there is named, and where the clone is shallow how to fetch it', () => {
  const missing = 'There is no commit "v9".';
  expect(() => findPrevious('v9', whole)).toThrow(expect.objectContaining({ message: missing, exitCode: 2 }));
  expect(() => findPrevious('v9', shallow)).toThrow(
    /^There is no commit "v9"\. .*git fetch --unshallow --tags$/,
  );
  expect(() => findPrevious(undefined, folder)).toThrow(/this is not one/);
});

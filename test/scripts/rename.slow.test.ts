import { execFileSync } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { IDENTITY } from '@animal-store/definition/identity';
import { expect, test } from 'vitest';
import { createTemporaryFolder } from '../support/temporary-folder.js';

test('npm run rename leaves the old name only where it says what has happened', {
  timeout: 120_000,
}, async () => {
  const folder = join(await createTemporaryFolder(), 'clone');
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' });
  execFileSync('git', ['clone', '--quiet', '--depth', '1', `file://${resolve('.')}`, folder]);
  for (const packages of ['node_modules', 'tools/node_modules'])
    await symlink(resolve(packages), join(folder, packages));
  const rename = (...args: string[]) =>
    execFileSync(process.execPath, ['scripts/rename.js', ...args], { cwd: folder, encoding: 'utf8' });
  expect(() => rename('--name', 'My Library', '--title', 'x', '--key-prefix', 'lib_')).toThrow(/Usage/);
  expect(git('status', '--short', '--untracked-files=no')).toBe('');
  rename('--name', 'library', '--title', 'Library Service', '--key-prefix', 'lib_');
  const { name, title, keyPrefix, metricsPrefix } = IDENTITY;
  const old = [
    name,
    name.replaceAll('-', ''),
    title,
    metricsPrefix,
    `${keyPrefix}test_`,
    `${keyPrefix}live_`,
    // In a pattern
    `${keyPrefix}(`,
  ].flatMap((each) => ['-e', each]);
  const left = git('grep', '--files-with-matches', '-I', '--ignore-case', '--fixed-strings', ...old)
    .trim()
    .split('\n');
  const past = (path: string) => path === 'CHANGELOG.md' || path.startsWith('docs/releases/');
  expect(left.filter((path) => !past(path))).toEqual([]);
  expect(git('grep', '--files-with-matches', 'library_', '--', 'docs/monitoring/alerts.yaml')).not.toBe('');
});

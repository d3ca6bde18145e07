import { spawnSync } from 'node:child_process';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { afterAll, expect, test } from 'vitest';

const root = await createTemporaryFolder();
afterAll(() => rm(root, { recursive: true }));
await mkdir(join(root, 'scripts/checkers/local'), { recursive: true });
await writeFile(join(root, 'scripts/checkers/local/package.json'), '{ "version": "1.0.0" }');
await cp('scripts/install.js', join(root, 'scripts/install.mjs'));

/** Gives the folder a lock file with a package of its own, and with those that are named. */
async function writeLock(...names: readonly string[]): Promise<void> {
  const dependencies = { local: 'file:local', ...Object.fromEntries(names.map((name) => [name, '1.0.0'])) };
  const integrity = `sha512-${Buffer.alloc(64).toString('base64')}`;
  const packages = {
    '': { dependencies },
    local: { version: '1.0.0' },
    'node_modules/local': { resolved: 'local', link: true },
    ...Object.fromEntries(names.map((name) => [`node_modules/${name}`, { version: '1.0.0', integrity }])),
  };
  await writeFile(join(root, 'scripts/checkers/package.json'), JSON.stringify({ dependencies }));
  const lock = { lockfileVersion: 3, packages };
  await writeFile(join(root, 'scripts/checkers/package-lock.json'), JSON.stringify(lock));
}

/** Where nothing answers for a registry */
function install(): { status: number | null; stderr: string } {
  const env = {
    ...process.env,
    npm_config_registry: 'http://127.0.0.1:9/',
    npm_config_cache: join(root, '.npm'),
    npm_config_fetch_retry_mintimeout: '10',
  };
  const script = join(root, 'scripts/install.mjs');
  return spawnSync(process.execPath, [script, 'scripts/checkers'], { env, encoding: 'utf8' });
}

test('packages are installed once, and again when the lock file has changed', async () => {
  await writeLock();
  const line = 'Installing the packages of scripts/checkers/ …\n';
  const first = install();
  expect(first).toMatchObject({ status: 0 });
  expect(first.stderr).toContain(line);
  expect(install()).toMatchObject({ status: 0, stderr: '' });

  await writeLock('remote');
  const without = install();
  expect(without.stderr).toContain(line);
  expect(without.stderr).toMatch(
    /The packages of scripts\/checkers\/ could not be installed: .* registry.*\n$/,
  );
  expect(without.status).toBe(1);
});

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
}

const folder = await createTemporaryFolder();
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The packages that npm has installed for production, and those that are copied to dist/, as name@version. */
function listInstalled(): Set<string> {
  const archive = execFileSync('tar', ['-c', '.npmrc', 'package.json', 'package-lock.json', 'packages'], {
    maxBuffer: 2 ** 27,
  });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  const options = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  execFileSync('npm', ['ci', ...options], { cwd: folder, stdio: 'pipe' });
  const { packages }: { packages: Record<string, { version: string; link?: boolean }> } = JSON.parse(
    readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8'),
  );
  const copied = readdirSync('dist/node_modules/@animal-store').map((name) => `packages/${name}`);
  const installed = Object.entries(packages).filter(
    ([path, { link }]) => (path.includes('node_modules/') && !link) || copied.includes(path),
  );
  const toName = (path: string) =>
    path.startsWith('packages/')
      ? path.replace('packages', '@animal-store')
      : path.split('node_modules/').at(-1);
  return new Set(installed.map(([path, { version }]) => `${toName(path)}@${version}`));
}

const output = join(folder, 'release');
beforeAll(() => {
  execFileSync(process.execPath, ['scripts/release/artifacts.js', output], { stdio: 'pipe' });
}, 120_000);

test('a release has the packages that npm publishes, with their code', () => {
  const manifests = readdirSync('packages').map((name) =>
    JSON.parse(readFileSync(`packages/${name}/package.json`, 'utf8')),
  );
  const published = manifests.filter((manifest) => !manifest.private);
  expect(published.length).toBeGreaterThan(1);
  for (const { name, version, exports } of published) {
    const tarball = join(output, `${name.slice(1).replace('/', '-')}-${version}.tgz`);
    const files = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).split('\n');
    const { types, default: code } = exports['.'];
    for (const path of [types, code]) expect(files).toContain(join('package', path));
  }
});

test('the SBOM of a release names exactly the packages that a deployment installs', () => {
  const { metadata, components }: { metadata: { component: Component }; components: Component[] } =
    JSON.parse(readFileSync(join(output, 'sbom.cdx.json'), 'utf8'));
  const { name, version, dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(metadata.component).toMatchObject({ name, version });

  const listed = components.map(({ purl }) => decodeURIComponent(purl.slice('pkg:npm/'.length)));
  const installed = listInstalled();
  expect(installed.size).toBeGreaterThan(Object.keys(dependencies).length);
  expect(new Set(listed)).toEqual(installed);
  const ofOthers = Object.entries<string>(dependencies).filter(([, wanted]) => !wanted.startsWith('file:'));
  for (const [dependency, wanted] of ofOthers) expect(listed).toContain(`${dependency}@${wanted}`);
  for (const { purl } of components) expect(purl).toMatch(/^pkg:npm\//);
}, 120_000);

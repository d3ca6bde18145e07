import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const readManifest = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/** The packages that npm would publish */
const packages = readdirSync('packages')
  .map((name) => join('packages', name))
  .filter((folder) => !readManifest(folder).private);

test('the platform, and the packages that know nothing of the service, can be published', () => {
  expect(packages).toEqual(
    [
      ...['batch-loader', 'client-core', 'compatibility', 'embedded-postgres', 'http-server', 'limits'],
      ...['platform', 'reference-page', 'tools'],
    ].map((name) => `packages/${name}`),
  );
});

test('the workflow of a release publishes them, once somebody lets it, with no right but to say who it is', () => {
  const { jobs } = parse(readFileSync('.github/workflows/release.yml', 'utf8'));
  expect(jobs.npm).toMatchObject({ if: expect.stringContaining('vars.'), environment: 'npm' });
  expect(jobs.npm.permissions).toEqual({ 'id-token': 'write' });
  expect(jobs.npm.strategy.matrix.package.map((name: string) => `packages/${name}`)).toEqual(packages);
});

describe.each(packages)('%s', (folder) => {
  // What those of the platform may import, rooms.test.ts says. Browsers try the reference page with the animals' guides.
  test.skipIf(folder === 'packages/platform')(
    'imports nothing out of its folder, in its tests neither',
    () => {
      const parts = folder === 'packages/reference-page' ? ['src'] : ['src', 'test'];
      const files = parts.flatMap((part) =>
        readdirSync(join(folder, part), { recursive: true, encoding: 'utf8' }).map((name) =>
          join(folder, part, name),
        ),
      );
      const sources = files.filter((path) => /\.[jt]s$/.test(path));
      expect(sources.length).toBeGreaterThan(2);
      for (const path of sources) {
        const imported = readFileSync(path, 'utf8').matchAll(/(?:from |import |import\()'(\.[^']+)'/g);
        const outside = [...imported]
          .map(([, target = '']) => relative(folder, join(dirname(path), target)))
          .filter((target) => target.startsWith('..'));
        expect(outside, path).toEqual([]);
      }
    },
  );

  test('says what npm, a compiler and a stranger look for', () => {
    const manifest = readManifest(folder);
    expect(manifest).toMatchObject({
      files: expect.any(Array),
      description: expect.stringMatching(/^[A-Z]/),
      license: 'MIT',
      engines: { node: expect.any(String) },
      repository: { directory: folder },
    });
    // A package without a configuration of the compiler is JavaScript as it is written.
    const isCompiled = existsSync(join(folder, 'tsconfig.json'));
    if (isCompiled) expect(manifest.scripts.prepack).toBe('npm run build');
    expect(manifest.exports['.']).toMatchObject({
      types: manifest.types,
      default: expect.stringContaining(isCompiled ? 'dist/' : 'src/'),
    });
    for (const name of ['LICENSE', 'README.md']) expect(existsSync(join(folder, name)), name).toBe(true);
  });

  test('has its version in its changelog, or that of the service', () => {
    const own = join(folder, 'CHANGELOG.md');
    const hasOwn = existsSync(own);
    expect(readManifest(folder).files.includes('CHANGELOG.md')).toBe(hasOwn);
    const text = readFileSync(hasOwn ? own : 'CHANGELOG.md', 'utf8');
    const [, newest] = /^## (\S+) - (?:unreleased|\d{4}-\d{2}-\d{2})$/m.exec(text) ?? [];
    expect(newest).toBe(readManifest(folder).version);
  });
});

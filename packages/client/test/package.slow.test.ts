import { readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { build, type Rolldown } from 'vite';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { SCOPES } from '../../../src/definition/scopes.js';
import { useService } from '../../platform/test/support/test-service.js';
import {
  copySources,
  findPacked,
  type InstalledPackage,
  installPackage,
  packCopy,
  ROOT,
  run,
} from './installed-package.js';
import { COMMONJS_PROGRAM, PROGRAM, STREAM_PROGRAM, WRONG_PROGRAM } from './programs.js';

const MAX_BUNDLE_GZIP_BYTES = 16 * 1024;

/** The oldest version of @trpc/client whose streams work with the service, as the README names it */
const [, STREAMS_FROM = ''] =
  /`httpBatchStreamLink`\s+works\s+with\s+the\s+service\s+from\s+version\s+(11\.\d+)/.exec(
    await readFile(join(ROOT, 'packages/client/README.md'), 'utf8'),
  ) ?? [];

/** The versions of tRPC that documents name, each in a front-end of its own. */
const FRONT_ENDS: Readonly<Record<string, readonly string[]>> = {
  'the newest tRPC 11': [],
  'tRPC 11.0': ['@trpc/client@11.0.0', '@trpc/server@11.0.0', 'typescript@5.7.2'],
  'the oldest tRPC for streams': [`@trpc/client@${STREAMS_FROM}.0`, `@trpc/server@${STREAMS_FROM}.0`],
};
type FrontEnd = string;
const NEWEST = 'the newest tRPC 11';
const OLDEST = 'tRPC 11.0';
const OLDEST_WITH_STREAMS = 'the oldest tRPC for streams';

const COMPILERS = {
  /** The oldest that tRPC takes */
  'TypeScript 5.7': () => join(frontEnd(OLDEST).project, 'node_modules/typescript'),
  'TypeScript 5.9': () => join(ROOT, 'node_modules/typescript'),
  'TypeScript 7': () => join(ROOT, 'node_modules/typescript-native'),
} as const;
type Compiler = keyof typeof COMPILERS;

const RESOLUTIONS = {
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
  nodenext: { module: 'nodenext', moduleResolution: 'nodenext' },
  node16: { module: 'node16', moduleResolution: 'node16' },
} as const;

// Each compilation takes seconds of CPU.
vi.setConfig({ testTimeout: 180_000 });

let folder: string;
const frontEnds = new Map<FrontEnd, InstalledPackage>();

const { service } = useService();

beforeAll(async () => {
  folder = await createTemporaryFolder();
  const { url: address } = await fetch(`${service.url}/client.tgz`, { method: 'HEAD' });
  for (const [name, packages] of Object.entries(FRONT_ENDS)) {
    frontEnds.set(name, await installPackage(address, packages));
  }
}, 300_000);
afterAll(async () => {
  for (const { remove } of frontEnds.values()) await remove();
  await rm(folder, { recursive: true, force: true });
});

function frontEnd(name: FrontEnd = NEWEST): InstalledPackage {
  return frontEnds.get(name) ?? expect.unreachable(`${name} is not installed`);
}

/** Type-checks and emits a program, the declarations of its dependencies included; returns the compiler's output. */
async function compile(compiler: Compiler, project: string, file: string, options: object): Promise<string> {
  const compilerOptions = {
    target: 'es2022',
    // tRPC's own declarations mention Disposable.
    lib: ['es2023', 'dom', 'esnext.disposable'],
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    rootDir: '.',
    outDir: 'out',
    ...options,
  };
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }));
  const failed = (error: { stdout: string }) => error;
  return (
    await run(process.execPath, [join(COMPILERS[compiler](), 'bin/tsc')], { cwd: project }).catch(failed)
  ).stdout;
}

async function listModules(): Promise<string[]> {
  const sources = await readdir(join(ROOT, 'packages/client-core/src'));
  return sources.map((name) => basename(name, '.ts'));
}

test('the packed client has the same bytes whenever, wherever and by whom it is built', async () => {
  const copy = join(folder, 'copy');
  await copySources(copy);
  const sources = join(copy, 'packages/client-core/src');
  for (const name of await readdir(sources)) await utimes(join(sources, name), 1, 1);
  const other = await packCopy(copy, {
    ...process.env,
    TZ: 'Asia/Tokyo',
    LC_ALL: 'C',
    SOURCE_DATE_EPOCH: '1',
  });
  const own = await findPacked(ROOT);
  expect(basename(other)).toBe(basename(own));
  expect((await readFile(other)).equals(await readFile(own))).toBe(true);
});

test('the package holds its modules, their types, a README, and nothing else', async () => {
  const { installed } = frontEnd();
  const modules = await listModules();
  const names = await readdir(installed, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  expect(files.map((path) => path.slice(installed.length + 1)).sort()).toEqual(
    [
      ...['LICENSE', 'README.md', 'package.json'],
      'dist/cjs/package.json',
      ...modules.flatMap((name) => [`dist/${name}.js`, `dist/${name}.d.ts`]),
      ...modules.flatMap((name) => [`dist/cjs/${name}.js`, `dist/cjs/${name}.d.ts`]),
    ].sort(),
  );
  const readme = await readFile(join(installed, 'README.md'), 'utf8');
  expect(readme).toMatch(/^# @animal-store\/client\n/);
});

test('the modules and their types import nothing but tRPC', async () => {
  for (const name of await listModules()) {
    for (const file of [`${name}.js`, `${name}.d.ts`, `cjs/${name}.js`, `cjs/${name}.d.ts`]) {
      const code = await readFile(join(frontEnd().installed, 'dist', file), 'utf8');
      for (const [, from] of code.matchAll(/(?:\bfrom|\b(?:import|require)\(?)\s*['"]([^'"]+)['"]/g))
        expect(from).toMatch(/^(?:@trpc\/(?:client|server)(?:\/\w+)?|\.\/[\w-]+\.js)$/);
    }
  }
});

test('installing it adds tRPC and its dependencies, nothing of the server, and runs nothing', async () => {
  const { project, installed } = frontEnd();
  const packages = await readdir(join(project, 'node_modules'));
  // TypeScript is a peer of tRPC's, whose newest version is in two packages.
  const expected = ['@animal-store', '@trpc', '@typescript', 'typescript'];
  expect(packages.filter((name) => !name.startsWith('.') && !expected.includes(name))).toEqual([]);
  expect(await readdir(join(project, 'node_modules/@animal-store'))).toEqual(['client']);
  const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
  expect(manifest).not.toHaveProperty('dependencies');
  expect(manifest).not.toHaveProperty('private');
  expect(manifest).not.toHaveProperty('scripts');
});

test('every condition of the package leads to a file in it', async () => {
  const { installed } = frontEnd();
  const { exports } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
  const targets = JSON.stringify(exports).match(/"\.\/[^"]+"/g) ?? [];
  expect(targets.length).toBeGreaterThanOrEqual(4);
  for (const target of targets)
    expect(await readFile(join(installed, JSON.parse(target)), 'utf8')).not.toBe('');
  expect(JSON.stringify(exports)).not.toContain('source');
});

test.each(Object.keys(FRONT_ENDS))('npm installs it beside %s', async (name) => {
  const { project, installed } = frontEnd(name);
  const read = async (path: string) => JSON.parse(await readFile(join(path, 'package.json'), 'utf8'));
  const { peerDependencies } = await read(installed);
  expect(peerDependencies).toEqual({ '@trpc/client': '^11.0.0', '@trpc/server': '^11.0.0' });
  const { version } = await read(join(project, 'node_modules/@trpc/client'));
  const asked = FRONT_ENDS[name]
    ?.find((each) => each.startsWith('@trpc/client@'))
    ?.split('@')
    .at(-1);
  expect(version).toMatch(asked === undefined ? /^11\.[1-9]/ : asked);
});

test.each([
  [NEWEST, 'TypeScript 7', 'bundler'],
  [NEWEST, 'TypeScript 7', 'nodenext'],
  [NEWEST, 'TypeScript 5.9', 'bundler'],
  [OLDEST, 'TypeScript 7', 'bundler'],
  [OLDEST, 'TypeScript 5.7', 'nodenext'],
] as const)(
  'with %s and %s, a program resolved as %s type-checks, declarations included, and runs',
  async (name, compiler, resolution) => {
    const { project } = frontEnd(name);
    await writeFile(join(project, 'main.ts'), PROGRAM);
    expect(await compile(compiler, project, 'main.ts', RESOLUTIONS[resolution])).toBe('');
    const args = ['out/main.js', service.url, service.key];
    const { stdout } = await run(process.execPath, args, { cwd: project });
    const { pet, names, plain, ...rest } = JSON.parse(stdout);
    expect(pet).toEqual({ id: expect.any(Number), name: 'Miso', categoryId: 2, status: 'pending' });
    expect(names).toContain('Miso');
    expect(plain).toBe('Miso');
    expect(rest).toEqual({ isMissing: true, scopes: SCOPES, limit: 1_000_000 });
  },
);

test.each([
  [NEWEST, 'TypeScript 7', 'node16'],
  [NEWEST, 'TypeScript 5.9', 'node16'],
  [OLDEST, 'TypeScript 5.7', 'nodenext'],
] as const)(
  'with %s and %s, a CommonJS program resolved as %s type-checks, declarations included, and runs',
  async (name, compiler, resolution) => {
    const { project } = frontEnd(name);
    await writeFile(join(project, 'main.cts'), COMMONJS_PROGRAM);
    expect(await compile(compiler, project, 'main.cts', RESOLUTIONS[resolution])).toBe('');
    const { stdout } = await run(process.execPath, ['out/main.cjs', service.url, service.key], {
      cwd: project,
    });
    // An error is recognized by either copy of the package, whichever created it.
    expect(JSON.parse(stdout)).toEqual({ name: 'Miso', code: 'not_found', isRecognized: true });
  },
);

test('the oldest @trpc/client that documents name for streams reads the error of a whole request', async () => {
  const guide = await readFile(join(ROOT, 'docs/guides/07-typescript.md'), 'utf8');
  expect(guide).toMatch(new RegExp(`\\b${STREAMS_FROM.replace('.', '\\.')}\\b`));
  const { project } = frontEnd(OLDEST_WITH_STREAMS);
  await writeFile(join(project, 'stream.mjs'), STREAM_PROGRAM);
  const { stdout } = await run(process.execPath, ['stream.mjs', service.url, service.key], { cwd: project });
  expect(JSON.parse(stdout)).toEqual({ listed: true, code: 'invalid_api_key' });
});

test.each(['TypeScript 5.9', 'TypeScript 7'] as const)(
  'unknown fields, values, procedures and error codes are compile errors in %s',
  async (compiler) => {
    const { project } = frontEnd();
    await writeFile(join(project, 'wrong.ts'), WRONG_PROGRAM);
    const output = await compile(compiler, project, 'wrong.ts', RESOLUTIONS.nodenext);
    const errors = [...output.matchAll(/^wrong\.ts\((\d+),\d+\): error (TS\d+): (.*)$/gm)];
    expect(errors.map(([, line, code, text]) => `${line} ${code} ${text}`)).toEqual([
      "5 TS2322 Type 'string' is not assignable to type 'number'.",
      "6 TS2353 Object literal may only specify known properties, and 'colour' does not exist in type 'NewPet'.",
      expect.stringMatching(/^7 TS(?:2345|2741) .*'NewPet'/),
      expect.stringMatching(/^8 TS2322 Type '"lost"' is not assignable to type 'PetStatus/),
      "9 TS2339 Property 'colour' does not exist on type 'Pet'.",
      "10 TS2339 Property 'noSuchOperation' does not exist on type 'Client'.",
      expect.stringMatching(/^12 TS2367 .*'ErrorCode' and '"no_such_code"' have no overlap/),
    ]);
  },
);

test('it bundles for browsers, small and without anything of Node.js', async () => {
  const { project } = frontEnd();
  await writeFile(join(project, 'page.ts'), PROGRAM);
  const built = (await build({
    root: project,
    configFile: false,
    logLevel: 'error',
    build: { write: false, minify: true, lib: { entry: 'page.ts', formats: ['es'], fileName: 'page' } },
  })) as Rolldown.RolldownOutput[];
  const chunks = built.flatMap(({ output }) => output).filter((file) => file.type === 'chunk');
  expect(chunks.flatMap(({ imports }) => imports)).toEqual([]);
  const code = chunks.map((chunk) => chunk.code).join('\n');
  expect(code).toContain('idempotency-key');
  expect(code).not.toMatch(/node:|__vite-browser-external/);
  expect(gzipSync(code).length).toBeLessThan(MAX_BUNDLE_GZIP_BYTES);
});

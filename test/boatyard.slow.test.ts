import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  createCaller,
  createTemporaryFolder,
  type Environment,
  execute,
  type Program,
  post,
  runCommand,
  toolCall,
  untilListening,
} from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startCollector } from '../packages/platform/test/support/otlp-collector.js';
import { createStore, EXAMPLE, install, listPackages, npm, pack } from './support/packed-store.js';
import { createTestDatabase } from './support/service.js';

// The example store as somebody makes it: outside of the checkout, with the platform as a package that npm installs.

const TIMEOUT_MS = 300_000;
const LATER = '1.1.0';
const LATER_MIGRATION = '20990101000000_key_notes';
/** Of the plan `free` of the example */
const FREE_PER_MINUTE = 60;

let folder: string;
let store: string;
const programs: Program[] = [];

/** A script of the store, as its README names them */
function start(cwd: string, environment: Environment, script = ['start']): Program {
  const program = runCommand('npm', ['run', '--silent', ...script], { PORT: '0', ...environment }, { cwd });
  programs.push(program);
  return program;
}

async function stop({ child, ended }: Program): Promise<void> {
  child.kill('SIGTERM');
  await ended;
}

beforeAll(async () => {
  folder = await createTemporaryFolder();
  store = join(folder, 'boatyard');
  await createStore(store);
  install(store);
}, TIMEOUT_MS);
afterAll(async () => {
  await Promise.all(programs.map(stop));
  await rm(folder, { recursive: true, force: true });
});

test('a store that was just made passes its own tests, and has all that the platform brings', {
  timeout: TIMEOUT_MS,
}, () => {
  expect(npm(store, 'test')).toMatch(/Tests .*\d+ passed/);
  expect(npm(store, 'run', '--silent', 'platform')).toContain(
    'prisma/ has all that the installed platform brings.\n',
  );
});

/** The versions of what a store shares with the platform, and what is tied to it: the oldest that fits, and one that does not */
const SHARED = [
  { names: ['zod'], oldest: '4.4.0', other: '4.3.6' },
  { names: ['@trpc/server', '@trpc/client'], oldest: '11.25.2', other: '11.22.1' },
];

test('it works with the oldest zod and tRPC that fit; others, and a second copy, end its build in a sentence that mends it', {
  timeout: TIMEOUT_MS,
}, async () => {
  const before = await readFile(join(store, 'package.json'), 'utf8');
  const build = async () => {
    const program = start(store, {}, ['build']);
    return [await program.ended, program.output()];
  };
  const platform = JSON.parse(await readFile('packages/platform/package.json', 'utf8'));
  for (const { names, oldest, other } of SHARED) {
    const [name = ''] = names;
    const range = platform.peerDependencies[name];
    const inVersion = (version: string) => names.map((each) => `${each}@${version}`);
    expect(range).toMatch(`>=${oldest} `);
    // npm itself refuses a tRPC that does not fit, and other package managers warn at most.
    install(store, '--legacy-peer-deps', ...inVersion(other));
    const mend = inVersion(range);
    const quoted = mend.map((each) => `"${each}"`).join(' ');
    expect(await build()).toEqual([
      1,
      `${name} ${other} is installed, and @animal-store/platform ${platform.version} works with ${range}: npm install ${quoted}\n`,
    ]);
    install(store, ...mend);
    expect((await build())[0]).toBe(0);
    install(store, ...inVersion(oldest));
  }
  expect(npm(store, 'test')).toMatch(/Tests .*\d+ passed/);
  const copy = 'node_modules/@animal-store/platform/node_modules/zod';
  await cp(join(store, 'node_modules/zod'), join(store, copy), { recursive: true });
  expect(await build()).toEqual([
    1,
    expect.stringMatching(`^zod 4\\.4\\.0 is installed, .*${copy}: leave one with: npm dedupe\n$`),
  ]);
  npm(store, 'dedupe', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error');
  await writeFile(join(store, 'package.json'), before);
  install(store);
  expect((await build())[0]).toBe(0);
});

test('it starts, serves three protocols to a key that its command makes, and refuses the key at its limit', {
  timeout: TIMEOUT_MS,
}, async () => {
  const environment = { DATA_DIR: join(folder, 'data') };
  const service = start(store, environment);
  const url = await untilListening(service);
  await service.until(/npm run keys -- --help/);
  // It has no script for Prisma Studio, and no storefront.
  expect(service.output()).not.toMatch(/npm run studio|npm run storefront/);
  const command = ['keys', '--', 'create', '--name', 'x', '--plan', 'free', '--json'];
  const issued = start(store, environment, command);
  expect(await issued.ended, issued.output()).toBe(0);
  const call = createCaller({ url, key: JSON.parse(issued.output()).key });

  const created = await call('/v1/boats', post({ name: 'Grebe', berth: 8 }));
  expect([created.status, created.body]).toEqual([
    201,
    { id: expect.any(Number), name: 'Grebe', berth: 8, status: 'for_sale' },
  ]);
  const bought = await call('/trpc/buyBoat', post({ boatId: created.body.id }));
  expect(bought.body.result.data).toEqual({ ...created.body, status: 'sold' });
  const refused = await call('/mcp', toolCall('buyBoat', { boatId: created.body.id }));
  expect(refused.body.result.structuredContent).toMatchObject({ code: 'boat_sold', status: 409 });

  const statuses: number[] = [];
  for (let sent = 3; sent <= FREE_PER_MINUTE; sent += 1) statuses.push((await call('/v1/boats')).status);
  expect(statuses).toEqual([...Array(FREE_PER_MINUTE - 3).fill(200), 429]);

  // Its pages and its client are those of its operations today. It has no guides, and so no changelog of its interface.
  for (const path of ['/docs', '/docs/key', '/llms.txt', '/client.tgz'])
    expect((await fetch(url + path)).status, path).toBe(200);
  expect((await fetch(`${url}/changelog`)).status).toBe(404);
  expect(await (await fetch(`${url}/docs/index.md`)).text()).toContain('POST /v1/boats/{boatId}/buy');
  await stop(service);
});

test('node --import @animal-store/platform/tracing sends its spans, under the name in its package.json', {
  timeout: TIMEOUT_MS,
}, async () => {
  const recipe = /^npm install --no-save .*$/m.exec(await readFile('docs/operations.md', 'utf8'))?.[0] ?? '';
  const collector = await startCollector();
  onTestFinished(() => void collector.close());
  npm(store, 'run', '--silent', 'build');
  install(store, ...recipe.split(' ').filter((word) => word.includes('@')), '--no-save');
  const environment = {
    ...{ PORT: '0', DATA_DIR: join(folder, 'data') },
    ...{ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '100' },
  };
  const args = ['--import', '@animal-store/platform/tracing', 'dist/main.js'];
  const service = runCommand(process.execPath, args, environment, { cwd: store });
  programs.push(service);
  const url = await untilListening(service);
  expect((await fetch(`${url}/v1/boats`)).status).toBe(401);
  const [span] = await vi.waitUntil(() => collector.spans.length > 0 && collector.spans, { timeout: 20_000 });
  expect(span).toMatchObject({ name: 'listBoats', service: 'boatyard', version: '1.0.0' });
  expect(span?.attributes).toMatchObject({ 'http.route': '/v1/boats', 'animal_store.protocol': 'rest' });
  await stop(service);
  install(store);
});

/** A program of a front-end, whose comments say what must not compile. */
const FRONT_END = `
  import { createTRPCClient, httpLink, TRPCClientError } from '@trpc/client';
  import type { AppRouter } from 'boatyard';
  const client = createTRPCClient<AppRouter>({ links: [httpLink({ url: 'http://127.0.0.1:3000/trpc' })] });
  try {
    const boats = await client.listBoats.query({ status: 'for_sale' });
    const names: string[] = boats.map(({ name }) => name);
    // @ts-expect-error no boat has this member
    boats.map(({ colour }) => colour);
    // @ts-expect-error no boat has this status
    await client.listBoats.query({ status: 'sunk' });
    const { plan }: { plan: 'free' | 'pro' | 'business' | 'enterprise' } = await client.getKey.query();
    console.log(names, plan);
  } catch (error) {
    const { data } = error as TRPCClientError<AppRouter>;
    if (data?.error.code === 'boat_sold' || data?.error.code === 'not_found') console.log(data.error.message);
    // @ts-expect-error no operation has this code
    if (data?.error.code === 'boat_sunk') console.log(data.error.message);
  }`;

test('its declarations are packed, and give a front-end in another repository the types of its operations', {
  timeout: TIMEOUT_MS,
}, async () => {
  const packed = join(folder, 'packed');
  npm(store, 'run', '--silent', 'build');
  await cp(join(store, 'dist'), join(packed, 'dist'), { recursive: true });
  // As in a store whose packages come from a registry
  await cp(join(EXAMPLE, 'package.json'), join(packed, 'package.json'));
  const declarations = pack(folder, packed);
  const front = join(folder, 'front');
  await mkdir(front);
  await writeFile(join(front, 'package.json'), '{ "private": true, "type": "module" }');
  await writeFile(join(front, 'main.ts'), FRONT_END);
  const { devDependencies } = JSON.parse(await readFile(join(packed, 'package.json'), 'utf8'));
  const tools = ['typescript', '@trpc/client', '@types/node'].map(
    (name) => `${name}@${devDependencies[name]}`,
  );
  install(front, ...(await listPackages(store)), ...declarations, ...tools);
  const options = [
    '--noEmit',
    '--strict',
    '--target',
    'es2023',
    '--module',
    'nodenext',
    '--skipLibCheck',
    'main.ts',
  ];
  expect(npm(front, 'exec', '--', 'tsc', ...options)).toBe('');
  expect(npm(front, 'ls', '--all', 'boatyard')).toContain('boatyard@1.0.0');
});

/** Packs the platform as a later version of it with one migration more. */
async function packLater(): Promise<string[]> {
  const later = join(folder, 'later');
  const filter = (path: string) => !/\/(?:src|test|node_modules)$/.test(path);
  await cp('packages/platform', later, { recursive: true, filter });
  const manifest = JSON.parse(await readFile(join(later, 'package.json'), 'utf8'));
  await writeFile(join(later, 'package.json'), JSON.stringify({ ...manifest, version: LATER }));
  const migration = join(later, 'prisma/migrations', LATER_MIGRATION);
  await mkdir(migration);
  await writeFile(join(migration, 'migration.sql'), 'ALTER TABLE "api_keys" ADD COLUMN "note" TEXT;\n');
  const models = join(later, 'prisma/platform.prisma');
  const text = await readFile(models, 'utf8');
  await writeFile(models, text.replace(/^ {2}owner .*$/m, '$&\n  note              String?'));
  return pack(folder, later);
}

test('the next version of the platform is an installation and a command: no merge, and the old process goes on', {
  timeout: TIMEOUT_MS,
}, async () => {
  const DATABASE_URL = await createTestDatabase('template0');
  const environment = { DATABASE_URL };
  const run = async (cwd: string, ...script: string[]) => {
    const program = start(cwd, environment, script);
    return [await program.ended, program.output()];
  };
  const [migrated] = await run(store, 'migrate');
  expect(migrated).toBe(0);
  const [, output] = await run(store, 'keys', '--', 'create', '--name', 'x', '--plan', 'pro', '--json');
  const { key } = JSON.parse(String(output));
  const old = start(store, environment);
  const callOld = createCaller({ url: await untilListening(old), key });
  const boat = (await callOld('/v1/boats', post({ name: 'Heron', berth: 6 }))).body;

  const next = join(folder, 'next');
  await cp(store, next, { recursive: true, verbatimSymlinks: true });
  install(next, ...(await packLater()));
  expect(await run(next, 'start')).toEqual([
    1,
    expect.stringMatching(`lacks 1 .*${LATER_MIGRATION}.*npm run platform`),
  ]);
  expect(await run(next, 'migrate')).toEqual([1, expect.stringContaining('npm run platform')]);
  const [code, written] = await run(next, 'platform');
  expect(code, String(written)).toBe(0);
  expect(String(written)).toContain(
    `wrote prisma/migrations/${LATER_MIGRATION}\nwrote prisma/platform.prisma\n`,
  );
  expect(await run(next, 'start')).toEqual([
    1,
    expect.stringMatching(`lacks 1 .*${LATER_MIGRATION}.*npm run migrate`),
  ]);
  expect(await run(next, 'migrate')).toEqual([0, `applied ${LATER_MIGRATION}\n`]);

  const callNew = createCaller({ url: await untilListening(start(next, environment)), key });
  expect((await callNew('/v1/boats')).body).toEqual([boat]);
  const second = (await callOld('/v1/boats', post({ name: 'Tern', berth: 5 }))).body;
  expect((await callNew(`/v1/boats/${second.id}/buy`, post({}))).status).toBe(200);
  expect((await callOld(`/v1/boats/${second.id}/buy`, post({}))).body.code).toBe('boat_sold');
  expect(await execute(DATABASE_URL, 'SELECT name, note FROM api_keys')).toEqual([{ name: 'x', note: null }]);
});

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  createCaller,
  createTemporaryFolder,
  type Environment,
  type Program,
  runCommand,
  runNode,
} from '@animal-store/platform/testing';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { asService, createTestDatabase, findServers } from './support/service.js';

interface LockedPackage {
  readonly link?: boolean;
  readonly dev?: boolean;
}

const MAX_INSTALL_KB = 150_000;
/** What a deployment copies beside node_modules. */
const BUILT = ['package.json', 'scripts', 'prisma', 'dist'];

const programs: Program[] = [];
let folder: string;

beforeAll(async () => {
  folder = await createTemporaryFolder();
  for (const name of BUILT) await cp(name, join(folder, name), { recursive: true });
  for (const path of await listProductionPackages()) await copyPackage(path);
});
afterEach(async () => {
  for (const { child } of programs) child.kill('SIGTERM');
  await Promise.all(programs.splice(0).map(({ ended }) => ended));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The packages that `npm ci --omit=dev` leaves, from what `npm ci` has installed: so the test downloads nothing. */
async function listProductionPackages(): Promise<string[]> {
  const lock: { packages: Record<string, LockedPackage> } = JSON.parse(
    await readFile('package-lock.json', 'utf8'),
  );
  return Object.entries(lock.packages)
    .filter(([path, { link, dev }]) => path.startsWith('node_modules/') && !link && !dev && existsSync(path))
    .map(([path]) => path);
}

/** Without the packages inside it, which are listed themselves. */
function copyPackage(path: string): Promise<void> {
  const filter = (source: string) => !source.slice(path.length).includes('node_modules');
  return cp(path, join(folder, path), { recursive: true, filter });
}

function start(program: Program): Program {
  programs.push(program);
  return program;
}

test('a production install takes at most 150 MB', () => {
  const [kilobytes] = execFileSync('du', ['-sk', 'node_modules'], { cwd: folder, encoding: 'utf8' }).split(
    '\t',
  );
  expect(Number(kilobytes)).toBeGreaterThan(1000);
  expect(Number(kilobytes)).toBeLessThanOrEqual(MAX_INSTALL_KB);
});

test('a production install migrates, issues a key, and serves both protocols and the reference page', async () => {
  const DATABASE_URL = await createTestDatabase('template0');
  const environment: Environment = {
    APP_ENV: 'production',
    DATABASE_URL: asService(DATABASE_URL),
    PORT: '0',
  };
  const npm = (args: readonly string[], own: Environment = environment) =>
    start(runCommand('npm', ['run', '-s', ...args], own, { cwd: folder }));
  const grant = ['--', '--grant-to', findServers().serviceRole.name];
  const migrate = npm(['migrate', ...grant], { ...environment, DATABASE_URL });
  expect([await migrate.ended, migrate.output()]).toEqual([0, expect.stringContaining('applied')]);
  const create = npm(['keys', '--', 'create', '--name', 'shop', '--plan', 'pro', '--json']);
  await create.ended;
  const { key } = JSON.parse(create.output());

  const service = start(runNode(['dist/main.js'], environment, folder));
  const [, url = ''] = await service.until(/listening on (http:[\w:/.]+)/);
  const call = createCaller({ url, key });
  expect((await call('/v1/pets')).status).toBe(200);
  expect((await call('/trpc/listPets')).status).toBe(200);
  for (const path of ['/docs', '/client.tgz']) {
    const { status, body } = await fetch(url + path);
    expect(status).toBe(200);
    await body?.cancel();
  }
});

test('a production install without DATABASE_URL says that it has no PostgreSQL of its own', async () => {
  const service = start(runNode(['dist/main.js'], { DATA_DIR: folder, PORT: '0' }, folder));
  expect(await service.ended).toBe(1);
  expect(service.output()).toMatch(
    /^DATABASE_URL is missing, and the embedded PostgreSQL is not installed.*\n$/,
  );
});

test('a production install logs JSON in development too, since what writes it in words is not installed', async () => {
  const environment = {
    DATABASE_URL: asService(await createTestDatabase()),
    NODE_ENV: 'development',
    PORT: '0',
  };
  const service = start(runNode(['dist/main.js'], environment, folder));
  const [line] = await service.until(/^.*listening on.*$/m);
  expect(JSON.parse(line)).toMatchObject({ level: 30, msg: expect.stringContaining('listening on') });
});

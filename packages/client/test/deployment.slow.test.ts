import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@animal-store/limits/testing';
import { type Program, runCommand, untilListening } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase } from '../../platform/test/support/test-service.js';
import { copySources, npm, packCopy, ROOT, run } from './installed-package.js';

const SETTINGS = ['--legacy-peer-deps=false', '--no-audit', '--no-fund'];

let folder: string;
let databaseUrl: string;
let port: number;
const running: Program[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'animal-store-deployments-'));
  databaseUrl = await createTestDatabase();
  port = await freePort();
});
afterAll(async () => {
  await stop();
  await rm(folder, { recursive: true, force: true });
});

async function stop(): Promise<void> {
  for (const { child } of running) child.kill('SIGTERM');
  await Promise.all(running.splice(0).map(({ ended }) => ended));
}

/** Ends what runs, and starts a release in its place, at the same address. Returns the address. */
async function deploy(sources: string): Promise<string> {
  await stop();
  const release = await mkdtemp(join(folder, 'release-'));
  await cp(join(ROOT, 'dist'), join(release, 'dist'), { recursive: true });
  await rm(join(release, 'dist/clients'), { recursive: true });
  for (const path of ['dist/clients', 'dist/client.json'])
    await cp(join(sources, path), join(release, path), { recursive: true });
  for (const path of ['node_modules', 'prisma', 'scripts', 'package.json'])
    await symlink(join(ROOT, path), join(release, path));
  const environment = { DATABASE_URL: databaseUrl, PORT: String(port), LOG_LEVEL: 'info' };
  const program = runCommand(process.execPath, ['dist/main.js'], environment, { cwd: release });
  running.push(program);
  return untilListening(program);
}

test('npm ci with an empty cache works after a deployment with another description', async () => {
  const sources = join(folder, 'sources');
  await copySources(sources);
  await packCopy(sources);
  const url = await deploy(sources);
  const project = join(folder, 'front-end');
  await mkdir(project);
  await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  const { url: address } = await fetch(`${url}/client.tgz`, { method: 'HEAD' });
  await npm(project, 'install', ...SETTINGS, '--prefer-offline', address);
  const lock = await readFile(join(project, 'package-lock.json'), 'utf8');

  // What `npm run release` does, and then a corrected sentence.
  await run(process.execPath, ['-e', "import('./scripts/client-package.js').then((it) => it.keepClient())"], {
    cwd: sources,
  });
  const schema = join(sources, 'dist/pets/schema.js');
  const text = await readFile(schema, 'utf8');
  const corrected = text.replace("description: '", "description: 'Corrected. ");
  expect(corrected).not.toBe(text);
  await writeFile(schema, corrected);
  await packCopy(sources);
  await deploy(sources);
  const { url: next } = await fetch(`${url}/client.tgz`, { method: 'HEAD' });
  expect(next).not.toBe(address);

  await rm(join(project, 'node_modules'), { recursive: true });
  await npm(project, 'ci', ...SETTINGS, '--cache', join(folder, 'empty-cache'));
  expect(await readFile(join(project, 'package-lock.json'), 'utf8')).toBe(lock);
  const installed = join(project, 'node_modules/@animal-store/client/dist/contract.d.ts');
  expect(await readFile(installed, 'utf8')).not.toContain('Corrected.');

  await npm(project, 'install', ...SETTINGS, '--prefer-offline', next);
  expect(await readFile(installed, 'utf8')).toContain('Corrected.');
});

import { chmod, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import {
  createTemporaryFolder,
  type Environment,
  type Program,
  runCommand,
  runNode,
} from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';

const ADDRESS = /(http:\/\/127\.0\.0\.1:\d+\/)#key=(as_test_\w+)/;

let folder: string;

beforeAll(async () => {
  folder = await createTemporaryFolder();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Runs what `npm run storefront` runs after the build. */
function start(environment: Environment = {}): Program {
  const program = runNode(['--import', 'tsx', 'examples/storefront/serve.ts'], {
    DATA_DIR: join(folder, '.data'),
    ...environment,
  });
  onTestFinished(async () => {
    program.child.kill('SIGTERM');
    await program.ended;
  });
  return program;
}

/** Occupies the default ports of service and page, unless another program already does. */
async function occupyPorts(): Promise<void> {
  for (const port of [3000, 5173]) {
    const server: Server = createServer();
    await new Promise<void>((resolve) => {
      server.once('error', () => resolve()).listen(port, '127.0.0.1', resolve);
    });
    onTestFinished(() => void server.close());
  }
}

test('service and page start together on free ports, whatever the environment says, and stop together', async () => {
  await occupyPorts();
  const program = start({
    DATABASE_URL: 'postgresql://127.0.0.1:9/nowhere',
    APP_ENV: 'production',
    WORKERS: '4',
    REUSE_PORT: 'true',
  });
  const [, page = '', key = ''] = await program.until(ADDRESS);
  const html = await (await fetch(page)).text();
  expect(html).toContain('<title>Animal Store</title>');
  expect(html).not.toContain(key);
  const response = await fetch(`${page}trpc/listPets`, { headers: { authorization: `Bearer ${key}` } });
  expect([response.status, response.headers.has('ratelimit')]).toEqual([200, true]);
  program.child.kill('SIGTERM');
  expect(await program.ended).toBe(0);
  await expect(fetch(page)).rejects.toThrow();
});

test('npm run storefront forwards SIGTERM, and exits with 0 after service and page have', async () => {
  const npm = runCommand('npm', ['run', 'storefront'], { DATA_DIR: join(folder, '.data') });
  const [, page = ''] = await npm.until(ADDRESS);
  npm.child.kill('SIGTERM');
  expect(await npm.ended).toBe(0);
  await expect(fetch(page)).rejects.toThrow();
});

/** A service that may run until the test has finished */
function startService(dataDir: string): Program {
  const service = runNode(['dist/main.js'], { DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'warn' });
  onTestFinished(async () => {
    service.child.kill('SIGKILL');
    await service.ended;
  });
  return service;
}

test('beside a running service it shows that one, and leaves it running; after its end it has one of its own', async () => {
  const dataDir = join(folder, '.running');
  const service = startService(dataDir);
  const [, url = ''] = await service.until(/ready at (http:\/\/[^,]+),/);
  const beside = start({ DATA_DIR: dataDir });
  const [, page = '', key = ''] = await beside.until(ADDRESS);
  expect(beside.output()).toContain(`The storefront of the service at ${url},`);
  const headers = { authorization: `Bearer ${key}` };
  expect((await fetch(`${page}trpc/listPets`, { headers })).status).toBe(200);
  beside.child.kill('SIGINT');
  beside.child.kill('SIGINT');
  expect(await beside.ended).toBe(0);
  expect((await fetch(`${url}/v1/key`, { headers })).status).toBe(200);

  // It cannot take its address away.
  service.child.kill('SIGKILL');
  await service.ended;
  const own = start({ DATA_DIR: dataDir });
  expect((await own.until(ADDRESS))[2]).toBe(key);
  expect(own.output()).toContain('The storefront, with that key');
});

test('beside a running service it asks that one directly, whatever proxy the environment names', async () => {
  const dataDir = join(folder, '.proxied');
  await startService(dataDir).until(/ready at/);
  let connections = 0;
  const proxy = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void proxy.close());
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const beside = start({ DATA_DIR: dataDir, NODE_USE_ENV_PROXY: '1', HTTP_PROXY: url, http_proxy: url });
  const [, page = '', key = ''] = await beside.until(ADDRESS);
  expect(beside.output()).toContain('The storefront of the service at');
  const headers = { authorization: `Bearer ${key}` };
  expect((await fetch(`${page}trpc/listPets`, { headers })).status).toBe(200);
  expect(connections).toBe(0);
});

test('repeated SIGINT, as from Ctrl-C, still stops both cleanly', async () => {
  const program = start();
  await program.until(ADDRESS);
  program.child.kill('SIGINT');
  program.child.kill('SIGINT');
  expect(await program.ended).toBe(0);
});

test('the service stops when the process that started it is killed', async () => {
  const program = start();
  await program.until(ADDRESS);
  const [, service = ''] = /ready at (http:\/\/[^,]+),/.exec(program.output()) ?? [];
  expect((await fetch(`${service}/health/live`)).status).toBe(200);
  program.child.kill('SIGKILL');
  const probe = () =>
    fetch(`${service}/health/live`).then(
      () => 'responds',
      () => 'is gone',
    );
  await expect.poll(probe).toBe('is gone');
});

test('it says clearly when the service cannot start', async () => {
  const file = join(folder, 'no-folder');
  await writeFile(file, '');
  await chmod(file, 0o644);
  const program = start({ DATA_DIR: join(file, '.data') });
  expect(await program.ended).toBe(1);
  expect(program.output()).toMatch(/DATA_DIR .* cannot be used/);
  expect(program.output()).toMatch(/The service did not start, so there is no storefront to show\.\n$/);
});

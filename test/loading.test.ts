import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isDatabaseOutage } from '../src/platform/connections/outage.js';
import { message, toolCall } from './support/mcp.js';
import { withoutModule } from './support/missing-module.js';
import { list, withPrisma } from './support/operations-under-test.js';
import { runKeys, runNode, UNREACHED_LIMITS, untilListening } from './support/process.js';
import { stop } from './support/service-processes.js';
import { asService } from './support/service-role.js';
import { createTemporaryFolder } from './support/temporary-folder.js';
import { type Caller, createCaller, createTestDatabase } from './support/test-service.js';

const DATABASE_URL = await createTestDatabase();
const { key } = await runKeys({ DATABASE_URL }, 'create', '--name', 'x', ...UNREACHED_LIMITS);
const marker = join(await createTemporaryFolder(), 'missing');

/** Starts the built service in a process in which a package is missing until `install` is called. */
async function startWithout(specifier: string) {
  await writeFile(marker, '');
  const environment = { DATABASE_URL: asService(DATABASE_URL), PORT: '0', LOG_LEVEL: 'info' };
  const service = runNode([...withoutModule(specifier, marker), 'dist/main.js'], environment);
  onTestFinished(async () => void (await stop(service)));
  const install = () => rm(marker);
  const url = await untilListening(service);
  return { service, install, url, call: createCaller({ url, key }) };
}

const readReadiness = async (call: Caller) => {
  const { status, body } = await call('/health/ready', { key: null });
  return [status, body];
};

type Started = Awaited<ReturnType<typeof startWithout>>;

/** Whoever needs the package may try again; the rest is served, and the database is not to blame. */
async function expectMissing({ call, url }: Started, path: string, init?: RequestInit): Promise<void> {
  const { status, headers, body } = await call(path, init);
  expect([path, status, headers.get('retry-after')]).toEqual([path, 503, '1']);
  expect(body.code).toBe('service_unavailable');
  expect(body.message).not.toMatch(/database|module|package/i);
  expect((await call(list.path)).status).toBe(200);
  expect(await readReadiness(call)).toEqual([
    503,
    { status: 'unavailable', code: 'unavailable', limits: 'memory' },
  ]);
  expect(await (await fetch(`${url}/metrics`)).text()).toMatch(/^animal_store_database_ready 1$/m);
}

const isReady = { status: 'ok', database: 'ok', limits: 'memory' };

test.each(['@prisma/adapter-pg', '@prisma/client/runtime/client'])(
  "Prisma's client is loaded when the process listens: without %s it is not ready, and what needs it a 503, until it is there",
  async (specifier) => {
    const started = await startWithout(specifier);
    const { service, call, install } = started;
    await service.until(/a part of the service cannot be loaded/);
    await expectMissing(started, withPrisma.path, withPrisma.init);
    await install();
    expect(await readReadiness(call)).toEqual([200, isReady]);
    expect((await call(withPrisma.path, withPrisma.init)).status).toBe(404);
  },
);

test('the SDK of tools is loaded when the process listens: without it the process is not ready, and tools a 503, until it is there', async () => {
  const started = await startWithout('@modelcontextprotocol/server');
  const { service, call, install } = started;
  await service.until(/a part of the service cannot be loaded/);
  await expectMissing(started, '/mcp', message('tools/list'));
  await expectMissing(started, '/mcp', toolCall(list.name));
  await install();
  expect((await call('/mcp', message('tools/list'))).status).toBe(200);
  expect(await readReadiness(call)).toEqual([200, isReady]);
});

test('a module that is missing is no outage of the database', async () => {
  const imported = import('no-such-package' as string).catch((error: Error) => error);
  expect(isDatabaseOutage(await imported)).toBe(false);
  expect(isDatabaseOutage(Object.assign(new Error('lost'), { code: 'ECONNRESET' }))).toBe(true);
});

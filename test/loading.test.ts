import { expect, onTestFinished, test } from 'vitest';
import { message } from './support/mcp.js';
import { withoutModule } from './support/missing-module.js';
import { otherList } from './support/operations-under-test.js';
import { runNode } from './support/process.js';
import { stop, untilReady } from './support/service-processes.js';
import { createTemporaryFolder } from './support/temporary-folder.js';

const dataDir = await createTemporaryFolder();

/** Starts the built service in a process in which a package is missing once. */
async function startWithout(specifier: string) {
  const environment = { DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'info' };
  const service = runNode([...withoutModule(specifier, 1), 'dist/main.js'], environment);
  onTestFinished(async () => void (await stop(service)));
  return { service, ...(await untilReady(service)) };
}

test.each(['@prisma/adapter-pg', '@prisma/client/runtime/client'])(
  "Prisma's client is loaded when the process listens, before anybody asks for it, and again where %s was missing",
  async (specifier) => {
    const { service, call } = await startWithout(specifier);
    await service.until(/Prisma's client could not be loaded yet/);
    const { status, body } = await call(otherList.path);
    expect([status, body]).toEqual([200, expect.any(Array)]);
  },
);

test('a tool can be called as soon as the SDK, which was missing for the first call, is there', async () => {
  const { call } = await startWithout('@modelcontextprotocol/server');
  expect((await call('/mcp', message('tools/list'))).status).toBe(500);
  expect((await call('/mcp', message('tools/list'))).status).toBe(200);
});

import { findRedis, freePort } from '@animal-store/limits/testing';
import { createCaller, type Environment, post, untilListening } from '@animal-store/platform/testing';
import { afterEach, expect, test, vi } from 'vitest';
import { beginCreate } from '../../packages/platform/test/support/begin-create.js';
import { type Container, findImage, type Image, runContainer } from '../support/container.js';
import { UNREACHED_LIMITS } from '../support/programs.js';
import { asService, createTestDatabase, findServers } from '../support/service.js';

const image = findImage();
if (!image) process.stderr.write('Skipped the tests of the image, which npm run release:check builds\n');
const redis = image && (await findRedis());
const testImage = test.skipIf(!image);
const containers: Container[] = [];

vi.setConfig({ testTimeout: 60_000 });
afterEach(async () => {
  await Promise.all(
    containers.splice(0).map(async ({ child, ended, kill }) => {
      if (child.exitCode === null) await kill('SIGKILL');
      await ended;
    }),
  );
});

function run(args: readonly string[], environment: Environment): Container {
  const container = runContainer(image as Image, args, environment);
  containers.push(container);
  return container;
}

const { Entrypoint = [], Cmd = [], Healthcheck, StopSignal = 'SIGTERM' } = image?.config ?? {};
const [, ...healthcheck] = Healthcheck?.Test ?? [];
const start = (environment: Environment) => run([...Entrypoint, ...Cmd], environment);
const command = (args: readonly string[], environment: Environment) =>
  run([...Entrypoint, 'dist/cli.js', ...args], environment);

/** A migrated database and a key for it, both made with the image. */
async function prepare() {
  const DATABASE_URL = await createTestDatabase('template0');
  const environment = {
    DATABASE_URL: asService(DATABASE_URL),
    REDIS_URL: redis?.url ?? '',
    PORT: `${await freePort()}`,
  };
  const grant = ['--grant-to', findServers().serviceRole.name];
  const migrate = command(['migrate', ...grant], { ...environment, DATABASE_URL });
  expect([await migrate.ended, migrate.output()]).toEqual([0, expect.stringContaining('applied')]);
  const create = command(['keys', 'create', '--name', 'shop', ...UNREACHED_LIMITS, '-q'], environment);
  expect(await create.ended, create.output()).toBe(0);
  return { environment, url: `http://127.0.0.1:${environment.PORT}`, key: create.output().trim() };
}

testImage(
  'as process 1 on a read-only file system, it serves, is healthy, and ends with 0 after its last request',
  async () => {
    const { environment, url, key } = await prepare();
    const service = start(environment);
    await untilListening(service);
    const call = createCaller({ url, key });
    expect((await call('/v1/pets', post({ name: 'Miso', categoryId: 2 }))).status).toBe(201);
    expect((await call('/v1/pets')).body).toMatchObject([{ name: 'Miso' }]);
    expect((await call('/trpc/listPets')).status).toBe(200);
    const page = await fetch(`${url}/docs`);
    expect(page.status).toBe(200);
    await page.body?.cancel();
    const check = run(healthcheck, environment);
    expect([await check.ended, check.output()]).toEqual([0, expect.stringContaining('"status":"ok"')]);

    const finish = await beginCreate(url, key);
    await service.kill(StopSignal);
    await service.until(/finishing running requests/);
    expect(await finish()).toBe(201);
    expect(await service.ended).toBe(0);
  },
);

testImage(
  'its health check asks METRICS_PORT where there is one, and fails while nothing answers',
  async () => {
    const { environment } = await prepare();
    const METRICS_PORT = `${await freePort()}`;
    const before = run(healthcheck, { ...environment, METRICS_PORT });
    expect([await before.ended, before.output()]).toEqual([1, expect.stringContaining('ECONNREFUSED')]);
    const service = start({ ...environment, METRICS_PORT });
    await untilListening(service);
    const check = run(healthcheck, { ...environment, METRICS_PORT });
    expect([await check.ended, check.output()]).toEqual([0, expect.stringContaining('"status":"ok"')]);
  },
);

testImage(
  'it does not run as root, cannot write anywhere, and names the variable that is missing',
  async () => {
    const script = `
    const denied = ['/app/x', '/tmp/x', '/x'].map((path) => { try { fs.writeFileSync(path, ''); } catch ({ code }) { return code; } });
    console.log(process.pid, process.getuid(), denied.join());`;
    const probe = run([...Entrypoint, '-e', script], {});
    expect([await probe.ended, probe.output()]).toEqual([0, '1 1000 EROFS,EROFS,EROFS\n']);
    const service = start({});
    expect([await service.ended, service.output()]).toEqual([1, expect.stringContaining('DATABASE_URL')]);
  },
);

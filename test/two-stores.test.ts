import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../packages/platform/src/connections/client.js';
import type { Definition } from '../packages/platform/src/definition/definition.js';
import { applyMigrations } from '../packages/platform/src/migrations/migration-runner.js';
import type { Resource } from '../packages/platform/src/operations/resource.js';
import { readConfig } from '../packages/platform/src/process/config.js';
import { createService } from '../packages/platform/src/service.js';
import { definition as parcels } from '../packages/platform/test/store/definition/definition.js';
import { resources as parcelResources } from '../packages/platform/test/store/router.js';
import { toolCall } from '../packages/platform/test/support/mcp.js';
import {
  createCaller,
  createTestDatabase,
  post,
  untilConnected,
} from '../packages/platform/test/support/test-service.js';
import { definition as animals } from '../src/definition/definition.js';
import { resources as animalResources } from '../src/router.js';

// The animals, and the store of the platform's tests, at the same time in one process.

type Running = Awaited<ReturnType<typeof serve>>;

let shop: Running;
let depot: Running;

async function serve(definition: Definition, resources: readonly Resource[]) {
  const url = await createTestDatabase('template0');
  await applyMigrations(url, definition.root);
  const database = openDatabase(url, () => {}, definition);
  await untilConnected(database);
  const { app, keys, close } = await createService({
    definition,
    config: readConfig(definition.identity, {}),
    database,
    log: pino({ level: 'silent' }),
    resources,
    overrides: { overload: { delayMs: 60_000 } },
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  const { key } = await keys.create({ name: 'test', plan: 'pro' });
  const address = `http://127.0.0.1:${port}`;
  const call = createCaller({ url: address, key });
  return {
    definition,
    key,
    call,
    issue: keys.create,
    read: async (path: string) => (await fetch(address + path)).text(),
    async close() {
      await app.close();
      await close();
      await database.close();
    },
  };
}

beforeAll(async () => {
  [shop, depot] = await Promise.all([serve(animals, animalResources), serve(parcels, parcelResources)]);
});
afterAll(() => Promise.all([shop.close(), depot.close()]));

test('each issues keys of its own prefix, with its own scopes, and refuses those of the other', async () => {
  for (const [own, other] of [
    [shop, depot],
    [depot, shop],
  ] as const) {
    expect(own.key.startsWith(`${own.definition.identity.keyPrefix}test_`)).toBe(true);
    const { status, body } = await own.call('/v1/key');
    expect([status, body.scopes]).toEqual([200, own.definition.scopes]);
    expect((await other.call('/v1/key', { key: own.key })).body.code).toBe('invalid_api_key');
  }
});

test('each answers with its own operations and error codes over all protocols', async () => {
  const pet = { name: 'Rex', categoryId: 1, status: 'available' };
  expect((await shop.call('/v1/pets', post(pet))).status).toBe(201);
  expect((await shop.call('/v1/store/orders', post({ petId: 1 }))).status).toBe(201);
  expect((await shop.call('/trpc/createOrder', post({ petId: 1 }))).body.error.data.error.code).toBe(
    'pet_not_available',
  );
  expect((await depot.call('/v1/parcels', post({ label: 'Box', shelf: 1 }))).status).toBe(201);
  expect((await depot.call('/v1/parcels/1/collect', post({}))).status).toBe(200);
  const again = await depot.call('/mcp', toolCall('collectParcel', { parcelId: 1 }));
  expect(again.body.result.structuredContent.code).toBe('parcel_collected');
  expect((await depot.call('/v1/pets')).body.code).toBe('not_found');
  expect((await shop.call('/v1/parcels')).body.code).toBe('not_found');
  const rehearse = (store: Running, code: string) =>
    store.call('/v1/key', { headers: { prefer: `error=${code}` } });
  expect((await rehearse(shop, 'order_closed')).body.code).toBe('order_closed');
  expect((await rehearse(depot, 'order_closed')).body.message).toContain('parcel_collected');
});

test('each has its own metrics and its own document', async () => {
  for (const { definition, read } of [shop, depot]) {
    const { title, metricsPrefix, interfaceVersion, mainPath } = definition.identity;
    const metrics = await read('/metrics');
    expect(metrics).toContain(`${metricsPrefix}build_info{`);
    const others = [animals, parcels].filter((each) => each !== definition);
    for (const { identity } of others) expect(metrics).not.toContain(identity.metricsPrefix);
    const { info, paths, components } = JSON.parse(await read('/openapi.json'));
    expect([info.title, info.version]).toEqual([title, interfaceVersion]);
    expect(info.license).toEqual(definition === animals ? animals.identity.license : undefined);
    expect(Object.keys(paths)).toContain(mainPath);
    expect(components.schemas.Scope.anyOf[0].enum).toEqual(definition.scopes);
  }
});

import type { Definition } from '@animal-store/platform/definition';
import type { Resource } from '@animal-store/platform/operations';
import { patient, post, startStore, toolCall } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { definition as boats } from '../examples/boatyard/src/definition.js';
import { resources as boatResources } from '../examples/boatyard/src/router.js';
import { definition as animals } from '../src/definition/definition.js';
import { resources as animalResources } from '../src/router.js';

// The animals, and the example, at the same time in one process.

type Running = Awaited<ReturnType<typeof serve>>;

let shop: Running;
let yard: Running;

async function serve(definition: Definition, resources: readonly Resource[]) {
  const store = await startStore({ definition, resources });
  // A busy machine may answer with a 503.
  const call = patient(store.call);
  return { ...store, call, definition, read: async (path: string) => (await fetch(store.url + path)).text() };
}

beforeAll(async () => {
  [shop, yard] = await Promise.all([serve(animals, animalResources), serve(boats, boatResources)]);
});
afterAll(() => Promise.all([shop.close(), yard.close()]));

test('each issues keys of its own prefix, with its own scopes, and refuses those of the other', async () => {
  for (const [own, other] of [
    [shop, yard],
    [yard, shop],
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
  expect((await yard.call('/v1/boats', post({ name: 'Grebe', berth: 1 }))).status).toBe(201);
  expect((await yard.call('/v1/boats/1/buy', post({}))).status).toBe(200);
  const again = await yard.call('/mcp', toolCall('buyBoat', { boatId: 1 }));
  expect(again.body.result.structuredContent.code).toBe('boat_sold');
  expect((await yard.call('/v1/pets')).body.code).toBe('not_found');
  expect((await shop.call('/v1/boats')).body.code).toBe('not_found');
  const rehearse = (store: Running, code: string) =>
    store.call('/v1/key', { headers: { prefer: `error=${code}` } });
  expect((await rehearse(shop, 'order_closed')).body.code).toBe('order_closed');
  expect((await rehearse(yard, 'order_closed')).body.message).toContain('boat_sold');
});

test('each has its own metrics and its own document', async () => {
  for (const { definition, read } of [shop, yard]) {
    const { title, metricsPrefix, interfaceVersion, mainPath } = definition.identity;
    const metrics = await read('/metrics');
    expect(metrics).toContain(`${metricsPrefix}build_info{`);
    const others = [animals, boats].filter((each) => each !== definition);
    for (const { identity } of others) expect(metrics).not.toContain(identity.metricsPrefix);
    const { info, paths, components } = JSON.parse(await read('/openapi.json'));
    expect([info.title, info.version]).toEqual([title, interfaceVersion]);
    expect(info.license).toEqual(definition === animals ? animals.identity.license : undefined);
    expect(Object.keys(paths)).toContain(mainPath);
    expect(components.schemas.Scope.anyOf[0].enum).toEqual(definition.scopes);
  }
});

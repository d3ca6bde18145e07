import { startStore } from '@animal-store/platform/testing';
import { createTRPCClient, httpBatchLink } from '@trpc/client';
import { afterAll, expect, test } from 'vitest';
import { definition } from '../src/definition.js';
import { type AppRouter, resources } from '../src/router.js';

const { protocols, call, link, close } = await startStore({ definition, resources });
afterAll(close);
const trpc = createTRPCClient<AppRouter>({ links: [httpBatchLink(link)] });

test('a boat is sold once, over whatever protocol', async () => {
  const { result: boat } = await protocols.REST('createBoat', { name: 'Grebe', berth: 8 });
  expect(await trpc.listBoats.query({ status: 'for_sale' })).toContainEqual(boat);
  const bought = await protocols.MCP('buyBoat', { boatId: boat.id });
  expect(bought.result).toEqual({ ...boat, status: 'sold' });
  const { result: moves } = await protocols.REST('listMoves', { boatId: boat.id });
  expect(moves).toMatchObject([{ boatId: boat.id, place: 'quay' }]);

  for (const call of Object.values(protocols)) {
    const { result } = await call('buyBoat', { boatId: boat.id });
    expect(result).toMatchObject({ code: 'boat_sold', status: 409 });
    // A tool says besides what to do next.
    expect(result.message).toMatch(/^Grebe is sold\./);
  }
});

test('a sale whose response was lost is confirmed to its buyer, by the key of the first attempt', async () => {
  const { result: boat } = await protocols.REST('createBoat', { name: 'Teal', berth: 9 });
  const buy = (key: string) =>
    call(`/v1/boats/${boat.id}/buy`, { method: 'POST', headers: { 'Idempotency-Key': key } });
  expect((await buy('first')).body).toEqual({ ...boat, status: 'sold' });
  expect(await buy('first')).toMatchObject({ status: 200, body: { status: 'sold' } });
  expect(await buy('other')).toMatchObject({ status: 409, body: { code: 'boat_sold' } });
});

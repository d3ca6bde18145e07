import { startStore } from '@animal-store/platform/testing';
import { createTRPCClient, httpBatchLink } from '@trpc/client';
import { afterAll, expect, test } from 'vitest';
import { definition } from '../src/definition.js';
import { type AppRouter, resources } from '../src/router.js';

const { protocols, link, close } = await startStore({ definition, resources });
afterAll(close);
const trpc = createTRPCClient<AppRouter>({ links: [httpBatchLink(link)] });

test('a boat is sold once, over whatever protocol', async () => {
  const { result: boat } = await protocols.REST('createBoat', { name: 'Grebe', metres: 8 });
  expect(await trpc.listBoats.query({ status: 'for_sale' })).toContainEqual(boat);
  const bought = await protocols.MCP('buyBoat', { boatId: boat.id });
  expect(bought.result).toEqual({ ...boat, status: 'sold' });

  const refusal = { code: 'boat_sold', message: 'Grebe is sold.', status: 409 };
  for (const call of Object.values(protocols))
    expect((await call('buyBoat', { boatId: boat.id })).result).toEqual(refusal);
});

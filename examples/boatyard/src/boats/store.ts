import type { Database } from '@animal-store/platform/connections';
import {
  createChange,
  createInsert,
  createReads,
  type IdempotencyKey,
  table,
} from '@animal-store/platform/tables';
import type { Boat, NewBoat } from './schema.js';

const boats = table<Boat, Omit<Boat, 'id'>>('boats', {
  id: 'bigint',
  name: 'text',
  metres: 'integer',
  status: 'boat_status',
});

export type BoatStore = ReturnType<typeof createBoatStore>;

export function createBoatStore(database: Database) {
  const insert = createInsert(database, boats);
  const change = createChange(database, boats, {
    fields: ['status'],
    refusals: { boat_sold: "CASE WHEN seen.status = 'sold' THEN seen.name END" },
  });
  return {
    ...createReads(database, boats, { filters: ['status'] }),
    create: (input: NewBoat, key?: IdempotencyKey) => insert({ ...input, status: 'for_sale' }, key),
    /** Of several buyers at the same time, one gets the boat. */
    sell: (id: number) => change(id, { status: 'sold' }),
  };
}

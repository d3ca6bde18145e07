import {
  createChange,
  createInsert,
  createReads,
  createTransactions,
  type IdempotencyKey,
  table,
} from '@animal-store/platform/tables';
import { ApiError, type Database } from '../store.js';
import type { Boat, BoatChange, Move, NewBoat } from './schema.js';

const boats = table<Boat, NewBoat>('boats', {
  id: 'bigint',
  name: 'text',
  berth: 'bigint',
  status: 'boat_status',
});
const moves = table<Move, Omit<Move, 'id'>>('moves', {
  id: 'bigint',
  boatId: 'bigint',
  place: 'text',
  movedAt: 'timestamptz',
});

export const notFound = (id: number) =>
  new ApiError('not_found', { message: `There is no boat with the id ${id}.` });

export type BoatStore = ReturnType<typeof createBoatStore>;

export function createBoatStore(database: Database) {
  const transactions = createTransactions(database);
  const change = createChange(database, boats, {
    fields: ['name', 'berth'],
    refusals: { boat_sold: "CASE WHEN seen.status = 'sold' THEN seen.name END" },
  });
  const { list } = createReads(database, moves, { filters: ['boatId'] });
  return {
    ...createReads(database, boats, { filters: ['status', 'berth'] }),
    create: createInsert(database, boats),
    listMoves: list,
    /** @throws ApiError boat_sold */
    async update({ boatId, ...members }: BoatChange): Promise<Boat | undefined> {
      const changed = await change(boatId, members);
      if ('output' in changed) return changed.output;
      throw new ApiError(changed.refusal, { message: `${changed.detail} is sold.` });
    },
    /**
     * Of several who want a boat at the same time, one gets it: it is moved to the quay. With its key, the one who got it is
     * told so again. @throws ApiError not_found, boat_sold
     */
    buy: (id: number, key?: IdempotencyKey) =>
      transactions.once<Boat>(key, async (transaction, { lockRow, takeTurn }) => {
        if (!(await lockRow('boats', id))) throw notFound(id);
        const { name, berth, status } = await transaction.boat.findUniqueOrThrow({ where: { id } });
        if (status === 'sold') throw new ApiError('boat_sold', { message: `${name} is sold.` });
        await transaction.boat.update({ where: { id }, data: { status: 'sold' } });
        await takeTurn('moves');
        await transaction.move.create({ data: { boatId: id } });
        return { id, name, berth: Number(berth), status: 'sold' };
      }),
  };
}

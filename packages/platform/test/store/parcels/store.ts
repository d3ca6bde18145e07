import {
  createChange,
  createInsert,
  createReads,
  createTransactions,
  table,
} from '@animal-store/platform/tables';
import { ApiError, type Database } from '../store.js';
import type { NewParcel, Parcel, ParcelChange, Scan } from './schema.js';

const parcels = table<Parcel, NewParcel>('parcels', {
  id: 'bigint',
  label: 'text',
  shelf: 'bigint',
  status: 'parcel_status',
});
const scans = table<Scan, Omit<Scan, 'id'>>('scans', {
  id: 'bigint',
  parcelId: 'bigint',
  place: 'text',
  scannedAt: 'timestamptz',
});

export type ParcelStore = ReturnType<typeof createParcelStore>;

export function createParcelStore(database: Database) {
  const transactions = createTransactions(database);
  const change = createChange(database, parcels, {
    fields: ['label', 'shelf'],
    refusals: { parcel_collected: "CASE WHEN seen.status = 'collected' THEN seen.label END" },
  });
  const { list } = createReads(database, scans, { filters: ['parcelId'] });
  return {
    ...createReads(database, parcels, { filters: ['status', 'shelf'] }),
    create: createInsert(database, parcels),
    listScans: list,
    /** @throws ApiError parcel_collected */
    async update({ parcelId, ...members }: ParcelChange): Promise<Parcel | undefined> {
      const changed = await change(parcelId, members);
      if ('output' in changed) return changed.output;
      throw new ApiError(changed.refusal);
    },
    /** Of several who want a parcel at the same time, one gets it. @throws ApiError parcel_collected */
    collect: (id: number) =>
      transactions.run(async (transaction, { lockRow, takeTurn }) => {
        if (!(await lockRow('parcels', id))) return undefined;
        const { label, shelf, status } = await transaction.parcel.findUniqueOrThrow({ where: { id } });
        if (status === 'collected') throw new ApiError('parcel_collected');
        await transaction.parcel.update({ where: { id }, data: { status: 'collected' } });
        await takeTurn('scans');
        await transaction.scan.create({ data: { parcelId: id } });
        return { id, label, shelf: Number(shelf), status: 'collected' } as const;
      }),
  };
}

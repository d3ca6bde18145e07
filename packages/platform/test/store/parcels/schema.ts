import {
  assignedId,
  fieldError,
  INPUT_ERROR,
  instant,
  int64,
  nestedPageInput,
  pageInput,
  pageOrder,
  pageOutput,
  text,
} from '@animal-store/platform/operations';
import { z } from 'zod';

const EXAMPLE = { id: 7, label: 'Fragile', shelf: 3, status: 'waiting' } as const;
const SCAN = { id: 4, parcelId: 7, place: 'door', scannedAt: '2026-01-31T09:30:00.000Z' } as const;

const label = text(1, 200).meta({ description: 'What is written on it' });
const shelf = int64().meta({ description: 'Where it lies' });
const status = z
  .enum(['waiting', 'collected', 'lost'], { error: fieldError('must be one of waiting, collected, lost') })
  .meta({ id: 'ParcelStatus', description: 'Where it has got to' });
const parcelId = int64().meta({ description: 'Identifier of the parcel', examples: [EXAMPLE.id] });

export const newParcel = z
  .object(
    { label, shelf, status: status.default('waiting').meta({ description: 'Where it has got to' }) },
    { error: INPUT_ERROR },
  )
  .meta({
    id: 'NewParcel',
    description: 'A parcel to keep',
    examples: [{ label: EXAMPLE.label, shelf: EXAMPLE.shelf, status: EXAMPLE.status }],
  });
export const parcel = z
  .object({ id: assignedId().meta({ description: 'Assigned by the service' }), label, shelf, status })
  .meta({ id: 'Parcel', description: 'A parcel', examples: [EXAMPLE] });
export const parcelList = pageOutput(parcel).meta({
  id: 'Parcels',
  description: 'Parcels',
  examples: [[EXAMPLE]],
});
export const parcelReference = z.object({ parcelId }, { error: INPUT_ERROR });
export const parcelChange = parcelReference
  .extend({ label: label.exactOptional(), shelf: shelf.exactOptional() })
  .refine(({ label, shelf }) => label !== undefined || shelf !== undefined, {
    error: 'At least one of label and shelf is required',
  })
  .meta({
    id: 'ParcelChange',
    override: { minProperties: 1 },
    description: 'At least one of label and shelf',
    examples: [{ shelf: 4 }],
  });
export const parcelsPage = pageInput({
  status: status.meta({ description: 'Filter by status' }).optional(),
  shelf: int64()
    .meta({ description: 'Filter by shelf', examples: [EXAMPLE.shelf] })
    .optional(),
  order: pageOrder(),
});

const scan = z
  .object({
    id: assignedId().meta({ description: 'Assigned by the service' }),
    parcelId: int64().meta({ description: 'Identifier of the parcel' }),
    place: text(1, 100).meta({ description: 'Where it was scanned' }),
    scannedAt: instant('When it was scanned'),
  })
  .meta({ id: 'Scan', description: 'A scan of a parcel', examples: [SCAN] });
export const scanList = pageOutput(scan).meta({ id: 'Scans', description: 'Scans', examples: [[SCAN]] });
export const scansPage = nestedPageInput({ parcelId }, { order: pageOrder() });

export type NewParcel = z.output<typeof newParcel>;
export type Parcel = z.output<typeof parcel>;
export type ParcelChange = z.output<typeof parcelChange>;
export type Scan = z.output<typeof scan>;

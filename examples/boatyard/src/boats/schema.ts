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

const NEW = { name: 'Grebe', berth: 3, status: 'for_sale' } as const;
const EXAMPLE = { id: 7, ...NEW };
const MOVE = { id: 4, boatId: 7, place: 'quay', movedAt: '2026-01-31T09:30:00.000Z' };

const id = assignedId().meta({ description: 'Assigned by the service' });
const boatId = int64().meta({ description: 'The id of the boat', examples: [7] });
const name = text(1, 200).meta({ description: 'What is painted on the bow' });
const berth = int64().meta({ description: 'The number of the berth where it lies' });
const status = z
  .enum(['for_sale', 'laid_up', 'sold'], { error: fieldError('must be one of for_sale, laid_up, sold') })
  .meta({ id: 'BoatStatus', description: 'Whether it can be bought' });

export const boat = z.object({ id, name, berth, status }).meta({ id: 'Boat', examples: [EXAMPLE] });
export const boatList = pageOutput(boat).meta({ id: 'Boats', examples: [[EXAMPLE]] });
export const boatReference = z.object({ boatId }, { error: INPUT_ERROR });
export const boatsPage = pageInput({
  status: status.meta({ description: 'A status' }).optional(),
  berth: berth.meta({ description: 'A berth', examples: [3] }).optional(),
  order: pageOrder(),
});
export const newBoat = z
  .object({ name, berth, status: status.default('for_sale') }, { error: INPUT_ERROR })
  .meta({ id: 'NewBoat', examples: [NEW] });
export const boatChange = boatReference
  .extend({ name: name.exactOptional(), berth: berth.exactOptional() })
  .refine(({ name, berth }) => name !== undefined || berth !== undefined, {
    error: 'At least one of name and berth is required',
  })
  .meta({
    id: 'BoatChange',
    override: { minProperties: 1 },
    description: 'At least one of name and berth',
    examples: [{ berth: 4 }],
  });

const place = text(1, 100).meta({ description: 'Where it was moved to' });
const movedAt = instant('When it was moved');
const move = z.object({ id, boatId, place, movedAt }).meta({ id: 'Move', examples: [MOVE] });
export const moveList = pageOutput(move).meta({ id: 'Moves', examples: [[MOVE]] });
export const movesPage = nestedPageInput({ boatId }, { order: pageOrder() });

export type NewBoat = z.output<typeof newBoat>;
export type Boat = z.output<typeof boat>;
export type BoatChange = z.output<typeof boatChange>;
export type Move = z.output<typeof move>;

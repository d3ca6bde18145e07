import { assignedId, integer, pageInput, pageOutput, text } from '@animal-store/platform/operations';
import { z } from 'zod';

const members = {
  name: text(1, 100).meta({ description: 'What is painted on the bow', examples: ['Grebe'] }),
  metres: integer(1, 40).meta({ description: 'How long it is', examples: [8] }),
};
const status = z
  .enum(['for_sale', 'sold'], { error: 'must be for_sale or sold' })
  .meta({ id: 'BoatStatus', description: 'Whether it can be bought' });
const id = assignedId().meta({ description: 'The id of the boat', examples: [7] });

export const boat = z.object({ id, ...members, status }).meta({ id: 'Boat' });
export const boatList = pageOutput(boat).meta({ id: 'Boats', description: 'By ascending id' });
export const boatsPage = pageInput({ status: status.optional().meta({ description: 'A status' }) });
export const newBoat = z.object(members).meta({ id: 'NewBoat' });
export const boatReference = z.object({ boatId: id });

export type Boat = z.output<typeof boat>;
export type NewBoat = z.output<typeof newBoat>;

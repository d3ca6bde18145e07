import { listOrders } from './orders/procedures.js';
import { createPet, getPet, listPets } from './pets/procedures.js';
import { router } from './trpc.js';

/** Every operation of the service, under the name that both faces know it by. */
export const appRouter = router({ listPets, createPet, getPet, listOrders });

export type AppRouter = typeof appRouter;

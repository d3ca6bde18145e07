import { orders } from './orders/procedures.js';
import { ownKey } from './own-key/procedures.js';
import { pets } from './pets/procedures.js';
import { createRouter } from './platform/operations/resource.js';

/**
 * Every resource of the service. Routes, stores, usage counts and the OpenAPI document come from this list.
 *
 * @internal
 */
export const resources = [pets, orders, ownKey];

export const appRouter = createRouter(resources);

export type AppRouter = typeof appRouter;

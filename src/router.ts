import { orders } from './orders/procedures.js';
import { pets } from './pets/procedures.js';
import { createRouter } from './platform/operations/resource.js';
import { ownKey } from './platform/own-key/procedures.js';

/**
 * Every resource of the service; `ownKey` comes with the platform, and may be left out. Routes, stores, usage counts and the OpenAPI document come from this list.
 *
 * @internal
 */
export const resources = [pets, orders, ownKey];

export const appRouter = createRouter(resources);

export type AppRouter = typeof appRouter;

import { orders } from './orders/procedures.js';
import { pets } from './pets/procedures.js';
import { callerKey } from './platform/caller-key/procedures.js';
import { createRouter } from './platform/operations/resource.js';

/**
 * Every resource of the service. Routes, stores, usage counts and the OpenAPI document are made of this list. `callerKey`
 * comes with the platform, and may be left out.
 *
 * @internal
 */
export const resources = [pets, orders, callerKey];

export const appRouter = createRouter(resources);

export type AppRouter = typeof appRouter;

import { categories } from './categories/procedures.js';
import { orders } from './orders/procedures.js';
import { pets } from './pets/procedures.js';
import { createRouter, ownKey } from './store.js';

/**
 * Every resource of the service. Routes, stores, usage counts and the OpenAPI document are made of this list. `ownKey`
 * comes with the platform, and may be left out.
 *
 * @internal
 */
export const resources = [pets, orders, categories, ownKey];

export const appRouter = createRouter(resources);

export type AppRouter = typeof appRouter;

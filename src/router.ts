import { createRouter } from '@animal-store/platform/operations';
import { ownKey } from '@animal-store/platform/own-key';
import { categories } from './categories/procedures.js';
import { orders } from './orders/procedures.js';
import { pets } from './pets/procedures.js';

/**
 * Every resource of the service. Routes, stores, usage counts and the OpenAPI document are made of this list. `ownKey`
 * comes with the platform, and may be left out.
 *
 * @internal
 */
export const resources = [pets, orders, categories, ownKey];

export const appRouter = createRouter(resources);

export type AppRouter = typeof appRouter;

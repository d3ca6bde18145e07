import { parcels } from './parcels/procedures.js';
import { createRouter, ownKey } from './store.js';

export const resources = [parcels, ownKey];
export const appRouter = createRouter(resources);

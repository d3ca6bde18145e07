import { boats } from './boats/procedures.js';
import { createRouter, ownKey } from './store.js';

export const resources = [boats, ownKey];
export const appRouter = createRouter(resources);
/** For typed clients */
export type AppRouter = typeof appRouter;

import { createRouter } from '@animal-store/platform/operations';
import { ownKey } from '@animal-store/platform/own-key';
import { boats } from './boats/procedures.js';

export const resources = [boats, ownKey];
const appRouter = createRouter(resources);
/** For typed clients */
export type AppRouter = typeof appRouter;

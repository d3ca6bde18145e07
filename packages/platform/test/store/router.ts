import { createRouter } from '@animal-store/platform/operations';
import { ownKey } from '@animal-store/platform/own-key';
import { parcels } from './parcels/procedures.js';

export const resources = [parcels, ownKey];
export const appRouter = createRouter(resources);

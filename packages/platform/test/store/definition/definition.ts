import type { Definition } from '@animal-store/platform/definition';
import { ERRORS } from './errors.js';
import { IDENTITY } from './identity.js';
import { PLANS, WINDOWS } from './plans.js';
import { SCOPES } from './scopes.js';

export const definition = {
  root: new URL(import.meta.url.includes('/dist/') ? '../../' : '../', import.meta.url),
  identity: IDENTITY,
  windows: WINDOWS,
  plans: PLANS,
  fallbackPlan: 'free',
  developmentPlan: 'business',
  scopes: SCOPES,
  errors: ERRORS,
  loadPrisma: () => import('./generated/client.js'),
} as const satisfies Definition;

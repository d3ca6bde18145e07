import type { Definition } from '@animal-store/platform/definition';
import { ERRORS } from './errors.js';
import { IDENTITY } from './identity.js';
import { PLANS, WINDOWS } from './plans.js';
import { SCOPES } from './scopes.js';

/** What this store is called, sells and allows: the value that the platform knows it by. */
export const definition = {
  /** The folder of package.json, prisma/ and dist/, from src/definition as from dist/definition */
  root: new URL('../../', import.meta.url),
  identity: IDENTITY,
  windows: WINDOWS,
  plans: PLANS,
  /** Its limits would apply to a key of `enterprise` without limits of its own, which the database does not allow. */
  fallbackPlan: 'free',
  /** The plan of the key that a start on the embedded database prints */
  developmentPlan: 'business',
  scopes: SCOPES,
  errors: ERRORS,
  loadPrisma: () => import('../generated/client.js'),
} as const satisfies Definition;

import type { Definition } from '@animal-store/platform/definition';

/** What the store is called, sells and allows. */
export const definition = {
  /** The folder of package.json, prisma/ and dist/ */
  root: new URL('../', import.meta.url),
  /** Keys, metrics and databases contain these names, so choose them before the first deployment. */
  identity: {
    name: 'boatyard',
    title: 'Boatyard Service',
    description: 'The boats that a yard has for sale, and where they were moved.',
    interfaceVersion: '1.0.0',
    keyPrefix: 'by_',
    metricsPrefix: 'boatyard_',
    embedded: { database: 'boatyard', systemDir: '/var/lib/boatyard' },
    grants: { boats: ['SELECT', 'INSERT', 'UPDATE'], moves: ['SELECT', 'INSERT'] },
    mainTable: 'boats',
    mainPath: '/boats',
    mainOperation: 'listBoats',
  },
  /** The windows in which requests are counted, the shortest first. Every plan has the minute. */
  windows: [
    { name: 'minute', lengthMs: 60_000, field: 'perMinute' },
    { name: 'day', lengthMs: 86_400_000, field: 'perDay' },
  ],
  /** The limits of each plan; undefined where every key has its own. A migration has the names, too. */
  plans: {
    free: { perMinute: 60, perDay: 1_000 },
    pro: { perMinute: 300, perDay: 10_000 },
    business: { perMinute: 1_000, perDay: 100_000 },
    enterprise: undefined,
  },
  /** The plan whose limits apply to a key of `enterprise` without limits of its own, which the database does not allow */
  fallbackPlan: 'free',
  /** The plan of the key that `npm start` prints */
  developmentPlan: 'business',
  /** What keys can allow. A migration has the names, too. */
  scopes: ['boats:read', 'boats:write', 'moves:read'],
  /** The codes of the store's own operations, which name them in their `errors`. */
  errors: {
    boat_sold: {
      status: 409,
      trpcCode: 'CONFLICT',
      message: 'The boat is sold.',
      description: 'the boat is sold',
      advice: 'To find another one, call listBoats with a `status` of `for_sale`.',
    },
  },
  loadPrisma: () => import('./generated/client.js'),
} as const satisfies Definition;

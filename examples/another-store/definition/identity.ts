/**
 * Keys, metrics and databases contain these names, so choose them before the first deployment. `grants` is what the service may
 * do with the tables of the store.
 */
export const IDENTITY = {
  name: 'boatyard',
  title: 'Boatyard Service',
  description: 'The boats that a yard has for sale.',
  keyPrefix: 'by_',
  metricsPrefix: 'boatyard_',
  embedded: { database: 'boatyard', systemDir: '/var/lib/boatyard' },
  grants: { boats: ['SELECT', 'INSERT', 'UPDATE'] },
  mainTable: 'boats',
  mainPath: '/boats',
  mainOperation: 'listBoats',
} as const;

/**
 * What distinguishes this store from any other that the platform could serve: its names, and the data it starts with.
 */
export const IDENTITY = {
  /** Lower case with hyphens: the name of the command line and of connections to the database */
  name: 'animal-store',
  /** The service, as people call it */
  title: 'Animal Store Service',
  /** A sentence: what callers find here */
  description: 'The catalogue and the orders of an animal store.',
  /** The version of the REST interface, which follows docs/guides/compatibility.md, and not the service's releases */
  interfaceVersion: '1.0.0',
  /** The licence under which callers may use the interface */
  license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
  /** How keys start; `live_` or `test_` follows. Issued keys contain it, so it cannot change. */
  keyPrefix: 'as_',
  /** How the names of metrics start. Dashboards and alerts contain it. */
  metricsPrefix: 'animal_store_',
  /** Where the embedded PostgreSQL keeps its data. Existing data directories contain these names. */
  embedded: { database: 'animal_store', systemDir: '/var/lib/animal-store' },
  /** The table that Prisma Studio opens; while it is empty, prisma/seed.sql may add the sample data. */
  mainTable: 'pets',
  /**
   * What the service may do with the store's own tables: the least that its statements need. `npm run migrate --
   * --grant-read-to ROLE` grants SELECT on these tables to a role that may read everything, such as an analyst's.
   */
  grants: {
    pets: ['SELECT', 'INSERT', 'UPDATE'],
    orders: ['SELECT', 'INSERT', 'UPDATE'],
    categories: ['SELECT', 'INSERT', 'UPDATE'],
  },
  /** The path of the list of its rows, relative to the version, for examples and the first lines of `npm start` */
  mainPath: '/pets',
  /** The operation of that list, for examples */
  mainOperation: 'listPets',
} as const;

import { deriveOperations } from '@animal-store/tools/operate';
import { definition } from '../../src/definition/definition.js';

type Definition = Parameters<typeof deriveOperations>[0];

/** The animals, and the same under the names of another store */
export const STORES: readonly Definition[] = [
  definition,
  {
    ...definition,
    identity: {
      ...definition.identity,
      name: 'boatyard',
      title: 'Boatyard Service',
      metricsPrefix: 'boatyard_',
    },
  },
];

/** What a store is run with, as the animals keep it */
export const filesOf = (store: Definition) =>
  deriveOperations(store, { folder: 'docs', runbooks: 'docs/runbooks.md' });

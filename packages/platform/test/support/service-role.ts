import { asServiceRole, execute, readServers, type Servers } from '@animal-store/platform/testing';
import { definition } from '#operations-under-test';
import { applyGrants } from '../../src/migrations/grants.js';

/** What this run has prepared for the store under test. */
export const findServers = (): Servers => readServers(definition);

/** The URL as services use it. A URL of another role than the owner's, which a test has made, stays as it is. */
export const asService = (databaseUrl: string): string => asServiceRole(definition, databaseUrl);

/** Creates the role of services on another server, with its grants on a migrated database. */
export async function createServiceRole(ownerUrl: string): Promise<void> {
  const { name, password } = findServers().serviceRole;
  await execute(ownerUrl, `CREATE ROLE ${name} LOGIN PASSWORD '${password}'`);
  await applyGrants(definition.identity.grants, ownerUrl, name, 'service');
}

import { inject } from 'vitest';
import { definition } from '#operations-under-test';
import { applyGrants } from '../../src/migrations/grants.js';
import { execute } from './execute.js';

/** The role that services under test run as. */
export interface ServiceRole {
  readonly name: string;
  readonly password: string;
}

/**
 * The URL as services use it: as a role with the grants of `npm run migrate -- --grant-to`, and nothing else. A URL of
 * another role than the owner's, which a test has made, stays as it is.
 */
export function asService(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  // The superuser of an embedded PostgreSQL is called as its database.
  const owners = [definition.identity.embedded.database, new URL(inject('postgresUrl')).username];
  if (!owners.includes(url.username)) return databaseUrl;
  const { name, password } = inject('serviceRole');
  return Object.assign(url, { username: name, password }).href;
}

/** Creates the role on a server, with its grants on a migrated database. */
export async function createServiceRole(ownerUrl: string, { name, password }: ServiceRole): Promise<void> {
  await execute(ownerUrl, `CREATE ROLE ${name} LOGIN PASSWORD '${password}'`);
  await applyGrants(definition.identity.grants, ownerUrl, name, 'service');
}

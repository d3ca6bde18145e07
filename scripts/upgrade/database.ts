import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createEmbeddedPostgres } from '@animal-store/embedded-postgres';
import { openDatabase } from '../../packages/platform/src/connections/client.js';
import { addSampleData } from '../../packages/platform/src/database/open-database.js';
import { applyGrants } from '../../packages/platform/src/migrations/grants.js';
import { applyMigrations } from '../../packages/platform/src/migrations/migration-runner.js';
import { COMMAND_CONNECT_TIMEOUT_MS } from '../../packages/platform/src/timing/timeouts.js';
import { definition } from '../../src/definition/definition.js';
import { IDENTITY } from '../../src/definition/identity.js';

const SERVICE_ROLE = 'upgrade_check';

export type MigratedDatabase = Awaited<ReturnType<typeof createMigratedDatabase>>;

/**
 * Creates a PostgreSQL within a folder, migrated by the previous version and then by this one, with this version's sample data.
 *
 * @param previous the folder of the previous version
 */
export async function createMigratedDatabase(folder: string, previous: string) {
  const { url, release } = await createEmbeddedPostgres({
    dataDir: join(folder, 'data'),
    systemDir: join(folder, 'system'),
    database: IDENTITY.embedded.database,
  });
  const owner = openDatabase(url, () => {}, definition, { connectTimeoutMs: COMMAND_CONNECT_TIMEOUT_MS });
  const close = () => owner.close().finally(release);
  try {
    await applyMigrations(url, join(previous, 'prisma/migrations'));
    await applyMigrations(url, definition.root);
    const password = randomBytes(16).toString('hex');
    await owner.pool.query(`CREATE ROLE ${SERVICE_ROLE} LOGIN PASSWORD '${password}'`);
    await applyGrants(IDENTITY.grants, url, SERVICE_ROLE, 'service');
    await addSampleData(definition, owner);
    return {
      owner,
      /** The URL of the role that services run as, with the documented grants */
      serviceUrl: Object.assign(new URL(url), { username: SERVICE_ROLE, password }).href,
      /** How many requests are stored as usage */
      async countRequests(): Promise<number> {
        const { rows } = await owner.pool.query(
          'SELECT coalesce(sum(requests), 0)::int AS count FROM api_key_usage',
        );
        return rows[0].count;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

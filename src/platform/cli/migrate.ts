import { applyGrants } from '../database/grants.js';
import { applyMigrations } from '../database/migration-runner.js';

export interface GrantOptions {
  readonly grantTo?: string;
  readonly grantReadTo?: string;
}

/** Applies pending migrations, and grants each role what it needs on the schema as it is then. */
export async function migrate(url: string, { grantTo, grantReadTo }: GrantOptions): Promise<void> {
  const applied = await applyMigrations(url);
  process.stdout.write(
    applied.map((name) => `applied ${name}\n`).join('') || 'The database is up to date.\n',
  );
  for (const [role, kind] of [
    [grantTo, 'service'],
    [grantReadTo, 'read'],
  ] as const) {
    if (role === undefined) continue;
    await applyGrants(url, role, kind);
    process.stdout.write(
      `granted "${role}" what ${kind === 'service' ? 'the service needs' : 'it may read'}\n`,
    );
  }
}

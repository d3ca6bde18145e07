import { findHistoryGap } from '../keys/history-triggers.js';
import { applyGrants } from '../migrations/grants.js';
import { applyMigrations } from '../migrations/migration-runner.js';
import type { DatabaseSource } from '../migrations/source.js';

export interface GrantOptions {
  readonly grantTo?: string;
  readonly grantReadTo?: string;
}

/**
 * Applies pending migrations, and grants each role what it needs on the schema as it is then. Says what mends the record of
 * keys, where somebody has taken a trigger away.
 */
export async function migrate(
  { url, database }: Pick<DatabaseSource, 'url' | 'database'>,
  { grantTo, grantReadTo }: GrantOptions,
): Promise<void> {
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
  const gap = await findHistoryGap(database);
  if (gap !== undefined) process.stdout.write(`${gap.message}. To mend it, as the owner:\n\n${gap.sql}\n`);
}

import type { Command } from 'commander';
import type { ConfiguredDatabase } from '../database/open-database.js';
import type { Definition } from '../definition/definition.js';
import { findHistoryGap } from '../keys/history.js';
import { applyGrants } from '../migrations/grants.js';
import { findKeepaliveGap } from '../migrations/keepalives.js';
import { applyMigrations } from '../migrations/migration-runner.js';
import { withDatabase } from './with-database.js';

interface GrantOptions {
  readonly grantTo?: string;
  readonly grantKeysTo?: string;
  readonly grantReadTo?: string;
}

type Source = Pick<ConfiguredDatabase, 'url' | 'database'>;

export function addMigrateCommand(program: Command, definition: Definition): void {
  program
    .command('migrate')
    .description(
      'apply pending migrations, as the role that owns the tables, and grant others what they need',
    )
    .option('--grant-to <role>', 'the role that the service and the commands on keys run as')
    .option('--grant-keys-to <role>', 'the role that "keys serve" runs as')
    .option(
      '--grant-read-to <role>',
      "a role that reads the store's tables, usage and keys, without their hashes",
    )
    .action((roles: GrantOptions) =>
      withDatabase(definition, {}, (source) => migrate(definition, source, roles)),
    );
}

/**
 * Applies pending migrations, then grants each role what it needs. Prints the SQL that adds missing settings of such a role,
 * or missing triggers of the history of keys.
 */
async function migrate(
  { root, identity }: Definition,
  { url, database }: Source,
  roles: GrantOptions,
): Promise<void> {
  const onWaiting = (message: string) => void process.stderr.write(`${message}\n`);
  const onNotice = (message: string) => void process.stdout.write(`${message}\n`);
  const applied = await applyMigrations(url, root, { name: identity.name, onWaiting, onNotice });
  process.stdout.write(
    applied.map((name) => `applied ${name}\n`).join('') || 'The database is up to date.\n',
  );
  for (const [role, kind, what] of [
    [roles.grantTo, 'service', 'the service needs'],
    [roles.grantKeysTo, 'keys', 'keys serve needs'],
    [roles.grantReadTo, 'read', 'it may read'],
  ] as const) {
    if (role === undefined) continue;
    await applyGrants(identity.grants, url, role, kind);
    process.stdout.write(`granted "${role}" what ${what}\n`);
    // People and reports may stop reading for longer than these settings allow.
    const gap = kind === 'read' ? undefined : await findKeepaliveGap(database, role);
    if (gap !== undefined)
      process.stdout.write(`${gap.message}. To mend it, as this role or a superuser:\n\n${gap.sql}\n`);
  }
  const gap = await findHistoryGap(database);
  if (gap !== undefined) process.stdout.write(`${gap.message}. To mend it, as the owner:\n\n${gap.sql}\n`);
}

import { type Command, Option } from 'commander';
import { findHistoryGap } from '../keys/history-triggers.js';
import { applyGrants } from '../migrations/grants.js';
import { applyMigrations } from '../migrations/migration-runner.js';
import { checkMigrations } from '../migrations/migrations.js';
import type { DatabaseSource, SourceOptions } from '../migrations/source.js';
import type { Config } from '../process/config.js';
import { parseMigrationName } from './arguments.js';

/** Lets something use the database that the configuration names. */
export type WithSource = (
  run: (source: DatabaseSource, config: Config) => Promise<void>,
  options?: Pick<SourceOptions, 'applicationName' | 'isLeftAsItIs'>,
) => Promise<void>;

interface GrantOptions {
  readonly grantTo?: string;
  readonly grantReadTo?: string;
}

interface MigrateOptions extends GrantOptions {
  readonly check?: boolean;
  readonly draft?: string;
}

type Source = Pick<DatabaseSource, 'url' | 'database'>;

export function addMigrateCommand(program: Command, withSource: WithSource): void {
  const grants = ['grantTo', 'grantReadTo'];
  program
    .command('migrate')
    .description(
      'apply pending migrations, as the role that owns the tables, and grant others what they need',
    )
    .option('--grant-to <role>', 'the role that the service and the commands on keys run as')
    .option(
      '--grant-read-to <role>',
      "a role that reads the store's tables, usage and keys, without their hashes",
    )
    .addOption(
      new Option(
        '--check',
        'apply nothing, but say where the database and prisma/schema.prisma differ (in a development checkout)',
      ).conflicts([...grants, 'draft']),
    )
    .addOption(
      new Option(
        '--draft <name>',
        'apply nothing, but write a migration with what prisma/schema.prisma has and the migrations have not (in a development checkout)',
      )
        .argParser(parseMigrationName)
        .conflicts(grants),
    )
    .action(async ({ check, draft, ...roles }: MigrateOptions) => {
      if (draft === undefined && !check) return withSource((source) => migrate(source, roles));
      const { loadSchemaEngine } = await import('../migrations/schema-engine.js');
      await loadSchemaEngine();
      const compare = draft === undefined ? checkDrift : (source: Source) => writeDraft(source, draft);
      await withSource(compare, { isLeftAsItIs: true });
    });
}

/**
 * Applies pending migrations, then grants each role what it needs. If a trigger of the record of keys is missing, prints
 * the SQL that restores it.
 */
async function migrate({ url, database }: Source, { grantTo, grantReadTo }: GrantOptions): Promise<void> {
  const onWaiting = (message: string) => void process.stderr.write(`${message}\n`);
  const applied = await applyMigrations(url, undefined, { onWaiting });
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

async function checkDrift({ url, database }: Source): Promise<void> {
  await checkMigrations(database);
  const { findDrift } = await import('../migrations/schema-difference.js');
  const drift = await findDrift(url);
  if (drift === undefined) {
    process.stdout.write('The database agrees with prisma/schema.prisma.\n');
    return;
  }
  process.stdout.write(`What would make the database what prisma/schema.prisma says:\n${drift}`);
  process.exitCode = 1;
}

async function writeDraft({ url }: Source, name: string): Promise<void> {
  const { draftMigration } = await import('../migrations/schema-difference.js');
  const path = await draftMigration(url, name);
  process.stdout.write(
    path === undefined
      ? 'Nothing to draft: the migrations have all that prisma/schema.prisma says.\n'
      : `wrote ${path}: complete it, as the lines at its head say.\n`,
  );
}

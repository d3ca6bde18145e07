import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type MigrationList, withEngine } from '@animal-store/tools';
import { definition } from '#operations-under-test';
import { prismaFolderOf, readMigrations } from '../../src/migrations/migrations.js';

export const ALL_SCHEMAS = { externalTables: [], externalEnums: [] };

/** What `prisma migrate deploy` does: it calls the same engine, as a binary that it downloads. */
export async function applyWithEngine(url: string, folder?: string): Promise<string[]> {
  const migrationsList = await listMigrations(folder);
  return withEngine(url, async (engine) => {
    const { appliedMigrationNames } = await engine.applyMigrations({ migrationsList, filters: ALL_SCHEMAS });
    return appliedMigrationNames;
  });
}

/** What `prisma migrate status` is told: the migrations that were edited after they had been applied, and that failed. */
export async function diagnose(url: string, folder?: string) {
  const migrationsList = await listMigrations(folder);
  return withEngine(url, (engine) =>
    engine.diagnoseMigrationHistory({ migrationsList, optInToShadowDatabase: false, filters: ALL_SCHEMAS }),
  );
}

/** The files as they are, line ends included. */
async function listMigrations(
  folder = join(prismaFolderOf(definition.root), 'migrations'),
): Promise<MigrationList> {
  const migrations = await readMigrations(folder);
  const migrationDirectories = await Promise.all(
    migrations.map(async ({ name }) => {
      const value = await readFile(join(folder, name, 'migration.sql'), 'utf8');
      return {
        path: name,
        migrationFile: { path: 'migration.sql', content: { tag: 'ok' as const, value } },
      };
    }),
  );
  const content = 'provider = "postgresql"\n';
  const lockfile = { path: 'migration_lock.toml', content };
  return { baseDir: folder, lockfile, shadowDbInitScript: '', migrationDirectories };
}

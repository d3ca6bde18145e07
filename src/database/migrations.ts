import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MigrationList } from '@prisma/schema-engine-wasm';
import type pg from 'pg';
import { OperatorError } from '../errors/operator-error.js';
import { toDatabaseError } from './outage.js';

export const PRISMA_FOLDER = fileURLToPath(new URL('../../prisma/', import.meta.url));
const MIGRATIONS_FOLDER = join(PRISMA_FOLDER, 'migrations');

/**
 * The names of the migrations in prisma/migrations that the database lacks, in order. Reads Prisma's own table
 * `_prisma_migrations` and nothing else, so that a start with nothing to apply never loads the engine.
 *
 * @throws OperatorError when an applied migration was edited afterwards, naming it, or the database cannot be used
 */
export async function listPendingMigrations(pool: pg.Pool): Promise<string[]> {
  const applied = await readAppliedMigrations(pool);
  const { migrationDirectories } = await readMigrations();
  const pending = migrationDirectories.filter(({ path, migrationFile }) => {
    const checksum = applied.get(path);
    if (checksum === undefined) return true;
    const { content } = migrationFile;
    if (content.tag === 'ok' && createHash('sha256').update(content.value).digest('hex') !== checksum) {
      throw new OperatorError(
        `Migration ${path} was changed after it was applied: restore the file and add a new migration. ` +
          'If it was never released and this is a development database, delete DATA_DIR (.data) instead.',
      );
    }
    return false;
  });
  return pending.map(({ path }) => path);
}

async function readAppliedMigrations(pool: pg.Pool): Promise<Map<string, string>> {
  try {
    const { rows: tables } = await pool.query(`SELECT to_regclass('_prisma_migrations') AS found`);
    if (tables[0].found === null) return new Map();
    const { rows } = await pool.query<{ name: string; checksum: string }>(
      'SELECT migration_name AS name, checksum FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
    );
    return new Map(rows.map(({ name, checksum }) => [name, checksum]));
  } catch (error) {
    throw toDatabaseError(error);
  }
}

/** All migrations of a folder, by default prisma/migrations, as the engine takes them. */
export async function readMigrations(folder = MIGRATIONS_FOLDER): Promise<MigrationList> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  const migrationDirectories = await Promise.all(
    names.map(async (name) => ({
      path: name,
      migrationFile: {
        path: 'migration.sql',
        content: {
          tag: 'ok' as const,
          value: await readFile(join(folder, name, 'migration.sql'), 'utf8'),
        },
      },
    })),
  );
  const lockfile = {
    path: 'migration_lock.toml',
    content: await readFile(join(folder, 'migration_lock.toml'), 'utf8'),
  };
  return { baseDir: folder, lockfile, shadowDbInitScript: '', migrationDirectories };
}

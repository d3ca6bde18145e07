import { execute } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { applyMigrations } from '../../packages/platform/src/migrations/migration-runner.js';
import { createTestDatabase } from '../support/service.js';

/** What keeps rows and reads right on each table, as PostgreSQL writes it. */
const RULES = `
  SELECT format('%s: %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS rule FROM pg_constraint
  WHERE connamespace = 'public'::regnamespace AND conrelid <> 0
  UNION ALL
  SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
  WHERE relnamespace = 'public'::regnamespace
  UNION ALL
  SELECT format('%s, enabled %s', pg_get_triggerdef(oid), tgenabled) FROM pg_trigger WHERE NOT tgisinternal
  ORDER BY 1`;

async function readRules(folder: string): Promise<string[]> {
  const url = await createTestDatabase('template0');
  await applyMigrations(url, folder);
  return (await execute<{ rule: string }>(url, RULES)).map(({ rule }) => rule);
}

test.each(['prisma/migrations', 'examples/boatyard/prisma/migrations'])(
  'the migrations in %s have every rule of those of the platform, beside their own for plans and scopes',
  async (folder) => {
    const platform = await readRules('packages/platform/prisma/migrations');
    expect(platform.join('\n')).toMatch(/api_keys_per_day_bounds(?:.|\n)*api_keys_scopes_not_empty/);
    expect(await readRules(folder)).toEqual(expect.arrayContaining(platform));
  },
);

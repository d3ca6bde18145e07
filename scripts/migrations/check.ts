import { checkMigrations } from '../../packages/platform/src/migrations/migrations.js';
import { definition } from '../../src/definition/definition.js';
import { runOnSource } from './command.js';
import { findDrift } from './schema-difference.js';

/*
 * `npm run migrate:check` changes nothing, and exits with 1 if the database and prisma/schema.prisma differ in tables, columns,
 * types or indexes.
 */
await runOnSource(async ({ url, database }) => {
  await checkMigrations(definition.root, database);
  const drift = await findDrift(url);
  if (drift === undefined) {
    process.stdout.write('The database agrees with prisma/schema.prisma.\n');
    return;
  }
  process.stdout.write(`These changes would make the database agree with prisma/schema.prisma:\n${drift}`);
  process.exitCode = 1;
});

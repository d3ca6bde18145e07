import { OperatorError } from '../../packages/platform/src/errors/operator-error.js';
import { exitWithError } from '../../packages/platform/src/process/exit.js';
import { definition } from '../../src/definition/definition.js';
import { runOnSource } from './command.js';
import { draftMigration } from './schema-difference.js';

/*
 * `npm run migrate:draft -- NAME` applies nothing, and writes a migration with what the migrations lack of
 * prisma/schema.prisma.
 */
const NAME = /^[a-z][a-z\d_]{0,99}$/;

const [name = '', ...rest] = process.argv.slice(2);
if (!NAME.test(name) || rest.length > 0) {
  const usage = 'Usage: npm run migrate:draft -- NAME, where NAME is in snake case, such as pet_breed.';
  exitWithError(definition.root, new OperatorError(usage), 2);
}
await runOnSource(async ({ url }) => {
  const path = await draftMigration(url, name);
  process.stdout.write(
    path === undefined
      ? 'Nothing to draft: the migrations have all that prisma/schema.prisma says.\n'
      : `wrote ${path}: complete it, as the lines at its head say.\n`,
  );
});

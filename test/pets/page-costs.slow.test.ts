import { onTestFinished, test } from 'vitest';
import { installPostgres } from '../../packages/platform/test/support/old-postgres.js';
import { SystemPostgres } from '../../packages/platform/test/support/system-postgres.js';
import { expectFlatPages } from './page-costs.js';

const bin = await installPostgres(14);

test.skipIf(bin === undefined)(
  'on the oldest PostgreSQL, too, a page costs the same in a large catalogue, whatever it is filtered by: full, the last or empty',
  { timeout: 60_000 },
  async () => {
    const server = await SystemPostgres.start({}, bin);
    onTestFinished(() => server.close());
    await expectFlatPages(server.urlOf());
  },
);

import { test } from 'vitest';
import { createTestDatabase } from '../support/service.js';
import { expectFlatPages } from './page-costs.js';

test('a page costs the same in a large catalogue, whatever it is filtered by: full, the last or empty', async () => {
  await expectFlatPages(await createTestDatabase());
});

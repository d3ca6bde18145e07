import type { Route } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { findBrowser } from '../../packages/platform/test/support/browser.js';
import { setUpStorefront } from '../support/storefront.js';
import { announcement, fill, names, numbers } from '../support/storefront-page.js';

const executable = findBrowser();

describe.skipIf(executable === undefined)('the storefront, when a save got lost', { timeout: 60_000 }, () => {
  const { visit, inspect } = setUpStorefront(executable);

  /** A save whose response does not arrive, although the service has stored the animal. Then the connection is back. */
  async function visitAndLoseSave() {
    const sentKeys: (string | undefined)[] = [];
    let isCut = false;
    const visited = await visit({
      pets: 3,
      prepare: async (page) => {
        await page.route('**/trpc/**', async (route: Route) => {
          if (isCut) await route.abort();
          else await route.continue();
        });
        await page.route('**/trpc/createPet', async (route: Route) => {
          sentKeys.push(route.request().headers()['idempotency-key']);
          if (!isCut) return route.continue();
          await route.fetch();
          return route.abort();
        });
      },
    });
    const { page } = visited;
    await names(page).nth(2).waitFor();
    isCut = true;
    await fill(page, { name: 'Miso', category: 'Cats', status: 'Pending' });
    await page.getByRole('button', { name: 'Save animal' }).click();
    const notice = page.locator('.form-notice');
    await notice.getByText('Not saved. The store cannot be reached.').waitFor();
    expect(await page.getByRole('button', { name: 'Save again' }).count()).toBe(0);
    isCut = false;
    await notice.getByText('The store can be reached again.').waitFor();
    await announcement(page, /^The store can be reached again\. .* only once\.$/).waitFor({
      state: 'attached',
    });
    return { ...visited, sentKeys };
  }

  test('the form offers to repeat it when the connection is back, and nothing is stored twice', async () => {
    const { page, service, sentKeys } = await visitAndLoseSave();
    await inspect(page, 'back');
    await page.getByRole('button', { name: 'Save again' }).click();
    await page.getByText('Just added').waitFor();
    expect(await numbers(page)).toEqual([4, 1, 2, 3]);
    expect(await service.items.list({ limit: 100 })).toHaveLength(4);
    expect(sentKeys.length).toBeGreaterThan(1);
    expect([new Set(sentKeys).size, sentKeys[0]]).toEqual([1, expect.stringMatching(/^[0-9a-f-]{36}$/)]);
    await fill(page, { name: 'Miso', category: 'Cats', status: 'Pending' });
    await page.getByRole('button', { name: 'Save animal' }).click();
    await page.getByText('No. 5').waitFor();
    expect(new Set(sentKeys).size).toBe(2);
  });

  test('an animal that was changed meanwhile is another one', async () => {
    const { page, sentKeys } = await visitAndLoseSave();
    await page.getByLabel('Name').fill('Misono');
    await page.getByRole('button', { name: 'Save again' }).click();
    await page.getByText('Just added').waitFor();
    expect(await numbers(page)).toEqual([5, 1, 2, 3]);
    expect(new Set(sentKeys).size).toBe(2);
  });
});

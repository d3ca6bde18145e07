import { createCaller } from '@animal-store/platform/testing';
import type { Page } from 'playwright-core';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findBrowser } from '../../packages/platform/test/support/browser.js';
import { startService, type TestService } from '../support/service.js';
import { setUpStorefront } from '../support/storefront.js';
import {
  announcement,
  choose,
  expectFocusOn,
  expectNoErrors,
  FAILED_REQUESTS,
  FILTER,
  names,
} from '../support/storefront-page.js';

const executable = findBrowser();
const CATEGORY = 'Show animals of a category';
const ORDERS_FILTER = 'Show orders by status';

async function startWith(animals: readonly string[]): Promise<TestService> {
  const service = await startService();
  onTestFinished(() => service.close());
  for (const [index, name] of animals.entries())
    await service.items.create({ name, categoryId: 1 + (index % 3), status: 'available' });
  return service;
}

function card(page: Page, name: string) {
  return page.locator('.card', { hasText: name });
}

function button(page: Page, label: string, name: string) {
  return page.getByRole('button', { name: `${label} ${name}`, exact: true });
}

describe.skipIf(executable === undefined)("the storefront's day", { timeout: 120_000 }, () => {
  const { visit, inspect } = setUpStorefront(executable);

  test('a clerk marks an animal as sold and as available again, and every list follows', async () => {
    const visited = await visit({ service: await startWith(['Miso', 'Otto', 'Pearl']) });
    const { page } = visited;
    await choose(page, FILTER, 'Sold');
    await page.getByText('No animal is sold').waitFor();
    await choose(page, FILTER, 'Available');
    await button(page, 'Mark as sold', 'Otto').focus();
    await page.keyboard.press('Enter');
    await announcement(page, 'Otto: It is sold now.').waitFor();
    // It stays where it is, so that a slip can be taken back.
    await card(page, 'Otto').locator('.badge', { hasText: 'Sold' }).waitFor();
    await expectFocusOn(card(page, 'Otto'));
    await inspect(page, 'marked');
    await choose(page, FILTER, 'Sold');
    await page.getByText('That is everyone: 1 animal.').waitFor();
    await button(page, 'Mark as available', 'Otto').click();
    await card(page, 'Otto').locator('.badge', { hasText: 'Available' }).waitFor();
    await choose(page, FILTER, 'All');
    await page.getByText('That is everyone: 3 animals.').waitFor();
    expect(await page.locator('.badge').allTextContents()).toEqual(Array(3).fill('Available'));
    expectNoErrors(visited);
  });

  test('an animal is ordered from the list, and its order has its name', async () => {
    const visited = await visit({ service: await startWith(['Miso', 'Otto']) });
    const { page } = visited;
    await page.getByRole('button', { name: 'Orders' }).click();
    await page.getByText('Nobody has ordered yet').waitFor();
    await page.getByRole('button', { name: 'Animals', exact: true }).click();
    for (const [index, name] of ['Otto', 'Miso'].entries()) {
      await button(page, 'Order', name).click();
      await card(page, name)
        .getByText(`Its order is No. ${index + 1}.`)
        .waitFor();
      await card(page, name).locator('.badge', { hasText: 'Pending' }).waitFor();
    }
    await inspect(page, 'ordered');
    await page.getByRole('button', { name: 'Orders' }).click();
    await page.getByRole('row', { name: /^No\. 2 Miso/ }).waitFor();
    const rows = await page.getByRole('row').allInnerTexts();
    expect(rows.slice(1).map((row) => /Miso|Otto/.exec(row)?.[0])).toEqual(['Miso', 'Otto']);
    expectNoErrors(visited);
  });

  test('a pending card leads to its order, which is approved and delivered, and the animal is sold', async () => {
    const visited = await visit({ service: await startWith(['Miso', 'Otto']) });
    const { page, url } = visited;
    await button(page, 'Order', 'Otto').click();
    await button(page, 'Order', 'Miso').click();
    // Whatever else its card offered would be refused.
    const buttons = () => card(page, 'Otto').getByRole('button').allInnerTexts();
    await card(page, 'Otto').getByText('Its order is No. 1.').waitFor();
    await expect.poll(buttons).toEqual(['Show its order']);
    // Somebody who has seen nothing of the order finds out that it holds the animal.
    await page.reload();
    await button(page, 'Mark as sold', 'Otto').waitFor();
    expect((await buttons())[0]).toBe('Show its order');
    await button(page, 'Mark as sold', 'Otto').click();
    await card(page, 'Otto').getByText('It is ordered. Its status changes with its order').waitFor();
    await expect.poll(buttons).toEqual(['Show its order']);
    await inspect(page, 'held');
    await button(page, 'Show its order', 'Otto').focus();
    await page.keyboard.press('Enter');
    await expectFocusOn(page.getByRole('heading', { name: 'Orders of No. 2' }));
    expect(page.url()).toBe(`${url}?view=orders&animal=2`);
    await page.getByText('That is all: 1 order.').waitFor();
    const row = page.getByRole('row', { name: /^No\. 1 / });
    await button(page, 'Approve', 'No. 1').focus();
    await page.keyboard.press('Enter');
    await announcement(page, 'Order 1: Approved.').waitFor();
    await expectFocusOn(row);
    await button(page, 'Deliver', 'No. 1').focus();
    await page.keyboard.press('Enter');
    await expectFocusOn(button(page, 'Yes, deliver', 'No. 1'));
    await inspect(page, 'asked');
    await page.keyboard.press('Enter');
    await row.getByText('Delivered: its animal is sold now.', { exact: true }).waitFor();
    await inspect(page, 'delivered');
    expect(await page.getByRole('button', { name: /No\. 1$/ }).count()).toBe(0);
    await page.getByRole('button', { name: 'Animals', exact: true }).click();
    await card(page, 'Otto').locator('.badge', { hasText: 'Sold' }).waitFor();
    expect(page.url()).toBe(url);
    await page.goBack();
    await page.getByRole('heading', { name: 'Orders of No. 2' }).waitFor();
    expectNoErrors(visited, FAILED_REQUESTS);
  });

  test('an order that is cancelled makes its animal available, and a second clerk sees that it is closed', async () => {
    const service = await startWith(['Miso']);
    const [first, second] = [await visit({ service }), await visit({ service })];
    await button(first.page, 'Order', 'Miso').click();
    await card(first.page, 'Miso').getByText('Its order is No. 1.').waitFor();
    for (const { page } of [first, second]) await page.getByRole('button', { name: 'Orders' }).click();
    await button(first.page, 'Cancel', 'No. 1').click();
    await button(first.page, 'Not now', 'No. 1').click();
    await button(first.page, 'Cancel', 'No. 1').click();
    await button(first.page, 'Yes, cancel', 'No. 1').click();
    await first.page.getByText('Cancelled: its animal is available now.', { exact: true }).waitFor();
    await button(second.page, 'Deliver', 'No. 1').click();
    await button(second.page, 'Yes, deliver', 'No. 1').click();
    await second.page.getByText('Somebody was faster: it is cancelled.', { exact: true }).waitFor();
    await second.page.locator('.badge', { hasText: 'Cancelled' }).waitFor();
    await inspect(second.page, 'closed');
    await choose(second.page, ORDERS_FILTER, 'Placed');
    await second.page.getByText('No order is placed').waitFor();
    await inspect(second.page, 'no-orders');
    await choose(second.page, ORDERS_FILTER, 'Cancelled');
    await second.page.getByText('That is all: 1 order.').waitFor();
    await second.page.reload();
    await second.page.getByText('That is all: 1 order.').waitFor();
    await first.page.getByRole('button', { name: 'Animals', exact: true }).click();
    await button(first.page, 'Order', 'Miso').waitFor();
    expectNoErrors(first);
    expectNoErrors(second, FAILED_REQUESTS);
  });

  test('a clerk who orders an animal that is gone reads so, and the card is brought up to date', async () => {
    const service = await startWith(['Miso', 'Otto']);
    const visited = await visit({ service });
    const { page } = visited;
    await names(page).first().waitFor();
    await service.database.pool.query(`UPDATE pets SET status = 'sold' WHERE name = 'Miso'`);
    await button(page, 'Order', 'Miso').click();
    await card(page, 'Miso').getByText('Somebody was faster: it is sold by now.').waitFor();
    await announcement(page, /^Miso: Somebody was faster/).waitFor();
    await card(page, 'Miso').locator('.badge', { hasText: 'Sold' }).waitFor();
    expect(await button(page, 'Order', 'Miso').count()).toBe(0);
    await inspect(page, 'gone');
    expectNoErrors(visited, FAILED_REQUESTS);
  });

  test('a card that was loaded before somebody else ordered its animal offers the order, and nothing that would be refused', async () => {
    const service = await startWith(['Miso']);
    const [first, second] = [await visit({ service }), await visit({ service })];
    await button(second.page, 'Order', 'Miso').waitFor();
    await button(first.page, 'Order', 'Miso').click();
    await card(first.page, 'Miso').getByText('Its order is No. 1.').waitFor();
    await button(second.page, 'Order', 'Miso').click();
    await card(second.page, 'Miso').getByText('Somebody was faster: it is pending by now.').waitFor();
    await button(second.page, 'Show its order', 'Miso').waitFor();
    for (const refused of ['Mark as sold', 'Mark as available'])
      expect(await button(second.page, refused, 'Miso').count()).toBe(0);
    expectNoErrors(second, FAILED_REQUESTS);
  });

  test('a card that was loaded before its animal was sold does not put that up for sale again, and is brought up to date', async () => {
    const service = await startWith(['Miso']);
    const setStatus = (status: string) => service.database.pool.query(`UPDATE pets SET status = '${status}'`);
    await setStatus('pending');
    const visited = await visit({ service });
    const { page } = visited;
    await card(page, 'Miso').locator('.badge', { hasText: 'Pending' }).waitFor();
    await setStatus('sold');
    await button(page, 'Mark as available', 'Miso').click();
    await card(page, 'Miso').getByText('Somebody was faster: it is sold by now.').waitFor();
    await announcement(page, /^Miso: Somebody was faster/).waitFor();
    await card(page, 'Miso').locator('.badge', { hasText: 'Sold' }).waitFor();
    expect(await service.items.get(1)).toMatchObject({ name: 'Miso', status: 'sold' });
    // Now that the clerk has seen it, it can be done.
    await button(page, 'Mark as available', 'Miso').click();
    await card(page, 'Miso').getByText('It is available now.').waitFor();
    expectNoErrors(visited, FAILED_REQUESTS);
  });

  test('over the limit, the card says when it goes on', async () => {
    const service = await startWith(['Miso']);
    const limits = { plan: 'enterprise', perMinute: 9, perDay: 1_000, expiresAt: null } as const;
    const { key } = await service.keys.create({ name: 'slow', ...limits });
    const visited = await visit({ service, key });
    const { page } = visited;
    await names(page).first().waitFor();
    // Another program uses up what is left of the key, which the page does not know.
    const other = createCaller({ url: service.url, key });
    while ((await other('/v1/pets')).headers.get('x-ratelimit-remaining') !== '0');
    await button(page, 'Mark as sold', 'Miso').click();
    await card(page, 'Miso')
      .getByText(/A short pause\..* Again in \d+:\d\d\./)
      .waitFor();
    expect(await button(page, 'Mark as sold', 'Miso').getAttribute('aria-disabled')).toBe('true');
    await inspect(page, 'limited-order');
    expectNoErrors(visited, FAILED_REQUESTS);
  });

  test('the category is a filter beside the status, in the address, and says when it has none', async () => {
    const visited = await visit({ service: await startWith(['Rex', 'Miso', 'Kiwi', 'Otto']) });
    const { page, url } = visited;
    await page.getByLabel(CATEGORY).selectOption('Dogs');
    await page.getByText('That is everyone: 2 animals.').waitFor();
    expect(await names(page).allTextContents()).toEqual(['Rex', 'Otto']);
    expect(page.url()).toBe(`${url}?category=1`);
    await choose(page, FILTER, 'Sold');
    await page.getByText('None of the dogs is sold').waitFor();
    await page.reload();
    await page.getByText('None of the dogs is sold').waitFor();
    await page.getByRole('button', { name: 'Show all animals' }).click();
    await page.getByText('That is everyone: 4 animals.').waitFor();
    expect(page.url()).toBe(url);
    await page.getByLabel(CATEGORY).selectOption('Reptiles');
    await page.getByText('No reptiles yet').waitFor();
    await inspect(page, 'empty-category');
    expectNoErrors(visited);
  });

  test('what a key may not do has no button', async () => {
    const service = await startWith(['Miso']);
    const limits = { plan: 'pro', perMinute: null, perDay: null, expiresAt: null } as const;
    const labels = ['Order', 'Mark as sold'];
    for (const [scopes, expected] of [
      [['pets:read'], []],
      [['pets:read', 'pets:write'], ['Mark as sold']],
      [['pets:read', 'orders:write'], ['Order']],
    ] as const) {
      const { key } = await service.keys.create({ name: 'some', scopes: [...scopes], ...limits });
      const { page } = await visit({ service, key });
      await names(page).first().waitFor();
      // The form, or the reason in its place, comes with the key's scopes.
      await page.locator('.add:not(.skeleton), .read-only').waitFor();
      const shown = await Promise.all(labels.map((label) => button(page, label, 'Miso').count()));
      expect(labels.filter((_, index) => shown[index] === 1)).toEqual(expected);
    }
  });
});

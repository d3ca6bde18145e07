import type { Page } from 'playwright-core';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findBrowser } from '../../packages/platform/test/support/browser.js';
import { startService } from '../support/service.js';
import { addPets, setUpStorefront } from '../support/storefront.js';
import { choose, fill, names } from '../support/storefront-page.js';

const executable = findBrowser();

/** Widths from 64rem on, where the form stands beside the catalogue */
const WIDE = [
  { width: 1024, height: 560 },
  { width: 1280, height: 720 },
  { width: 1366, height: 650 },
  { width: 1440, height: 900 },
] as const;

describe.skipIf(executable === undefined)("the storefront's layout", { timeout: 60_000 }, () => {
  const { visit } = setUpStorefront(executable);

  /** Expects that the save button is in the window as a whole, with nothing on top, and the fields can be scrolled to. */
  async function expectSaveInView(page: Page, state: string) {
    for (const size of WIDE) {
      await page.setViewportSize(size);
      const button = page.locator('.add-form [type=submit]');
      const isInView = await button.evaluate((element) => {
        const { top, bottom, left, width } = element.getBoundingClientRect();
        const points = [top + 4, bottom - 4].map((y) => document.elementFromPoint(left + width / 2, y));
        return bottom <= innerHeight && points.every((found) => found === element);
      });
      expect([state, size, isInView]).toEqual([state, size, true]);
      await choose(page, 'Status', 'Sold');
      await page.getByLabel('Name').click();
      expect(await page.evaluate(() => scrollY)).toBe(0);
    }
  }

  test('beside the catalogue, Save is always in the window, whatever the form shows', async () => {
    const { page } = await visit({ pets: 45 });
    await names(page).nth(19).waitFor();
    await expectSaveInView(page, 'empty');
    await choose(page, 'Category', 'Another category');
    await page.getByRole('button', { name: 'Save animal' }).click();
    await page.getByText('Type the number of the category.').waitFor();
    await expectSaveInView(page, 'errors');
    await fill(page, {
      name: 'W'.repeat(200),
      category: '7',
      status: 'Sold',
    });
    await page.getByRole('button', { name: 'Save animal' }).click();
    const confirmation = page.locator('.form-notice');
    await confirmation.waitFor();
    // Without its end the confirmation stays.
    await confirmation.evaluate((notice) => notice.getAnimations()[0]?.pause());
    await expectSaveInView(page, 'saved');
    const name = confirmation.locator('bdi');
    expect(
      await name.evaluate((text) => text.clientHeight / Number.parseFloat(getComputedStyle(text).lineHeight)),
    ).toBeCloseTo(3, 0);
    expect(await confirmation.count()).toBe(1);
  });

  test('beside the catalogue, Save is in the window when saving has failed, and when the key expires soon', async () => {
    const service = await startService();
    onTestFinished(() => service.close());
    await addPets(service, 3);
    const limits = { plan: 'enterprise', perMinute: 3, perDay: 1_000 } as const;
    const expiresAt = new Date(Date.now() + 86_400_000);
    const { key } = await service.keys.create({ name: 'limited', expiresAt, ...limits });
    const { page } = await visit({ service, key });
    await names(page).nth(2).waitFor();
    await page.getByText('This key expires on').waitFor();
    await fill(page, { name: 'Miso', category: 'Cats', status: 'Sold' });
    await page.getByRole('button', { name: 'Save animal' }).click();
    await page.locator('.form-notice').getByText('Not saved. A short pause.').waitFor();
    await expectSaveInView(page, 'failed');
  });

  test('in a window too low for a form of its own the page scrolls to Save', async () => {
    const { page } = await visit({ pets: 1 });
    await names(page).first().waitFor();
    await page.setViewportSize({ width: 1280, height: 400 });
    const button = page.getByRole('button', { name: 'Save animal' });
    await button.scrollIntoViewIfNeeded();
    await button.click();
    await page.getByText('Choose a category.').waitFor();
  });

  test('the masthead ends at the same edges as the content, at every width', async () => {
    const { page } = await visit({ pets: 45 });
    await names(page).nth(19).waitFor();
    const edgesOf = (selector: string) =>
      page
        .locator(selector)
        .evaluateAll((all) => all.map((each) => each.getBoundingClientRect()))
        .then((boxes) => [
          Math.min(...boxes.map(({ left }) => left)),
          Math.max(...boxes.map(({ right }) => right)),
        ]);
    for (const width of [320, 390, 820, 1024, 1280, 1440, 1920, 2560]) {
      await page.setViewportSize({ width, height: 900 });
      expect([width, await edgesOf('.masthead > *')]).toEqual([width, await edgesOf('.columns > *')]);
    }
  });

  test('the masthead stays in one row, and so does the foot of a card, in the narrowest window', async () => {
    const { page } = await visit({ pets: 3 });
    await names(page).nth(2).waitFor();
    await page.setViewportSize({ width: 320, height: 640 });
    const heightsOf = (selector: string) =>
      page.locator(selector).evaluateAll((all) => all.map((each) => each.clientHeight));
    const mastheads = await heightsOf('.masthead');
    expect(mastheads).toHaveLength(1);
    for (const height of mastheads) expect(height).toBeLessThan(80);
    const feet = await heightsOf('.card-number');
    expect(feet).toHaveLength(3);
    for (const height of feet) expect(height).toBeLessThan(25);
  });
});

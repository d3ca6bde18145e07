import type { Page } from 'playwright-core';
import { createServer } from 'vite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { storefrontConfig } from '../../examples/storefront/vite.config.js';
import {
  type Browser,
  findBrowser,
  findViolations,
  launchBrowser,
  openPage,
} from '../../packages/platform/test/support/browser.js';
import { errorTable } from '../../packages/platform/test/support/error-table.js';
import { startService, type TestService } from '../support/service.js';
import { addPets } from '../support/storefront.js';
import { expectFieldError, FAILED_REQUESTS, fill, names } from '../support/storefront-page.js';

const executable = findBrowser();

/** What the page says of each code that is not about the key itself; of any other it says that something did not work. */
const TITLES: Readonly<Record<string, string>> = {
  insufficient_scope: 'This key may not look',
  rate_limit_exceeded: 'A short pause',
  api_key_banned: 'This key is resting',
  pet_has_open_order: 'It is ordered',
  service_unavailable: 'The store cannot be reached',
};
const KEY_CODES = ['missing_api_key', 'invalid_api_key'];

describe.skipIf(executable === undefined)('rehearsing errors in development', { timeout: 120_000 }, () => {
  let browser: Browser;
  let service: TestService;
  let key: string;
  beforeAll(async () => {
    // As in a terminal: the tests run with that of a service.
    vi.stubEnv('NODE_ENV', 'development');
    browser = await launchBrowser(executable ?? '');
    service = await startService();
    await addPets(service, 3);
    const limits = { plan: 'business', perMinute: null, perDay: null, expiresAt: null } as const;
    ({ key } = await service.keys.create({ name: 'storefront', ...limits }));
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
    vi.unstubAllEnvs();
  });

  async function visit() {
    const server = await createServer({
      ...storefrontConfig(service.url),
      configFile: false,
      logLevel: 'silent',
    });
    onTestFinished(() => server.close());
    await server.listen();
    const watched = await openPage(browser.context);
    onTestFinished(() => watched.page.close());
    await watched.page.goto(`${server.resolvedUrls?.local[0]}#key=${key}`);
    await names(watched.page).nth(2).waitFor();
    await menu(watched.page).waitFor();
    return watched;
  }

  const menu = (page: Page) => page.getByRole('complementary', { name: 'Rehearsal' });
  async function rehearse(page: Page, code: string) {
    await menu(page).getByLabel('Requests fail with').selectOption(code);
    await menu(page).getByRole('button', { name: 'Load again' }).click();
  }

  test('the menu has every code, and the page explains each', async () => {
    const { page, errors } = await visit();
    const options = menu(page).getByRole('option');
    expect(await options.allTextContents()).toEqual(['no error', ...Object.keys(errorTable)]);
    expect(await findViolations(page)).toEqual([]);
    // On a phone it covers nothing of what is read.
    await page.setViewportSize({ width: 390, height: 844 });
    const box = await menu(page).boundingBox();
    const main = await page.getByRole('main').boundingBox();
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(main?.y ?? 0);
    await page.setViewportSize({ width: 1280, height: 900 });
    for (const code of Object.keys(errorTable).filter((each) => !KEY_CODES.includes(each))) {
      await rehearse(page, code);
      await page.getByRole('region', { name: TITLES[code] ?? 'That did not work' }).waitFor();
      await rehearse(page, '');
      await names(page).nth(2).waitFor();
    }
    for (const code of KEY_CODES) {
      await rehearse(page, code);
      await expectFieldError(page, 'API key', /This key has ended/);
      await page.getByLabel('API key').fill(key);
      await page.keyboard.press('Enter');
      await names(page).nth(2).waitFor();
    }
    expect(errors.filter((error) => !FAILED_REQUESTS.test(error))).toEqual([]);
  });

  test('the form can fail while the catalogue stays', async () => {
    const { page } = await visit();
    await menu(page).getByLabel('Requests fail with').selectOption('internal_error');
    await fill(page, { name: 'Miso', category: 'Cats', status: 'Sold' });
    await page.getByRole('button', { name: 'Save animal' }).click();
    await page.locator('.form-notice').getByText('Not saved. That did not work.').waitFor();
    expect(await names(page).count()).toBe(3);
    expect(await service.items.list({ limit: 100 })).toHaveLength(3);
  });
});

import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder, runNode } from '@animal-store/platform/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findBrowser, openPage } from '../../packages/platform/test/support/browser.js';
import { setUpStorefront } from '../support/storefront.js';
import {
  expectFieldError,
  expectFocus,
  expectNoErrors,
  FAILED_REQUESTS,
  fill,
  names,
  POLL,
} from '../support/storefront-page.js';

const executable = findBrowser();

describe.skipIf(executable === undefined)('the storefront', { timeout: 120_000 }, () => {
  const storefront = setUpStorefront(executable);
  const { visit, inspect } = storefront;

  test('the key is requested, kept in the session storage only, and removed on request', async () => {
    const { page, service, ...watched } = await visit({ key: null, pets: 3 });
    const field = page.getByLabel('API key');
    await field.waitFor();
    await inspect(page, 'no-key');
    await page.getByRole('button', { name: 'Open the store' }).click();
    await expectFieldError(page, 'API key', 'Paste a key first.');
    await field.fill(service.key);
    await field.press('Enter');
    await names(page).nth(2).waitFor();
    await page.reload();
    await names(page).nth(2).waitFor();
    const stores = await page.evaluate(() => [
      Object.values(sessionStorage),
      Object.values(localStorage),
      document.cookie,
    ]);
    expect(stores).toEqual([[service.key], [], '']);
    await page.getByRole('button', { name: 'Change key' }).click();
    await expectFocus(page, 'API key');
    expect(await page.evaluate(() => Object.values(sessionStorage))).toEqual([]);
    expectNoErrors({ page, service, ...watched });
  });

  test('a key in the address is taken over and removed from the address', async () => {
    const { page, url } = await visit({ pets: 1 });
    await names(page).first().waitFor();
    expect(page.url()).toBe(url);
  });

  test('an unknown key is reported, and another can be entered', async () => {
    const visited = await visit({ key: 'as_test_nobody', pets: 1 });
    const { page, service } = visited;
    await expectFieldError(page, 'API key', /does not know this key/);
    await expectFocus(page, 'API key');
    await inspect(page, 'unknown-key');
    await page.keyboard.type(service.key);
    await page.keyboard.press('Enter');
    await names(page).first().waitFor();
    expectNoErrors(visited, FAILED_REQUESTS);
  });

  test('a key that ends while it is used is said so, and another can be entered', async () => {
    const visited = await visit({ pets: 30 });
    const { page, service } = visited;
    await names(page).nth(19).waitFor();
    const limits = { plan: 'pro', perMinute: null, perDay: null, expiresAt: null } as const;
    const { key } = await service.keys.create({ name: 'next', ...limits });
    await service.database.pool.query(`UPDATE api_keys SET revoked_at = now() WHERE name <> 'next'`);
    await fill(page, { name: 'Miso', category: 'Cats', status: 'Sold' });
    await expect
      .poll(
        async () =>
          (await fetch(`${service.url}/v1/key`, { headers: { authorization: `Bearer ${service.key}` } }))
            .status,
      )
      .toBe(401);
    await page.getByRole('button', { name: 'Save animal' }).click();
    const reason = page.locator('.form-notice');
    await reason.getByText('This key has ended').waitFor();
    await reason.getByText('“Change key” at the top takes another one').waitFor();
    // Coming near the button loads more before it can be clicked, and the refusal removes it.
    await page.getByRole('button', { name: 'Load more' }).waitFor();
    await page.mouse.wheel(0, 10_000);
    await expectFieldError(page, 'API key', /This key has ended: it was revoked or replaced/);
    await inspect(page, 'ended-key');
    await page.keyboard.type(key);
    await page.keyboard.press('Enter');
    await names(page).first().waitFor();
    expectNoErrors(visited, FAILED_REQUESTS);
  });

  test('the orders have a tab, for keys that may read them, and an address', async () => {
    const visited = await visit({ pets: 2 });
    const { page, service, url } = visited;
    await page.getByRole('button', { name: 'Orders' }).click();
    await page.getByText('Nobody has ordered yet').waitFor();
    await service.database.pool.query(
      `INSERT INTO orders (pet_id, status) SELECT 1 + n % 2, 'delivered' FROM generate_series(1, 60) n`,
    );
    await page.goto(`${url}?view=orders`);
    await page.getByRole('row', { name: /^No\. 60 / }).waitFor();
    expect(await page.getByRole('row').nth(1).innerText()).toMatch(/^No\. 60\s/);
    // Coming near the button loads more before it can be clicked.
    await page.getByRole('button', { name: 'Load more' }).scrollIntoViewIfNeeded();
    await page.getByText('That is all: 60 orders.').waitFor();
    expect(await page.getByRole('row').count()).toBe(61);
    await page.getByText('Animal 2, of the test').first().waitFor();
    const seventh = page.getByRole('row', { name: /^No\. 7 / });
    expect(await seventh.innerText()).toMatch(/Animal 2, of the test\s+No\. 2\s+Delivered\s/);
    await inspect(page, 'orders');
    await page.getByRole('button', { name: 'Animals' }).click();
    await names(page).first().waitFor();
    expect(new URL(page.url()).search).toBe('');
    expectNoErrors(visited);

    const limits = { plan: 'pro', perMinute: null, perDay: null, expiresAt: null } as const;
    const { key } = await service.keys.create({ name: 'reader', scopes: ['pets:read'], ...limits });
    const reader = await visit({ service, key });
    await reader.page.getByRole('region', { name: 'This key may not add animals' }).waitFor();
    expect(await reader.page.getByRole('button', { name: 'Orders' }).count()).toBe(0);
  });

  test('the build contains no key, and nothing that is for development only', async () => {
    const files = await readdir(storefront.outDir, { recursive: true, withFileTypes: true });
    const paths = files.filter((file) => file.isFile()).map(({ parentPath, name }) => join(parentPath, name));
    expect(paths.length).toBeGreaterThan(2);
    const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8')));
    expect(texts.some((text) => text.includes('Save animal'))).toBe(true);
    for (const text of texts)
      expect(text).not.toMatch(/as_(?:test|live)_[0-9A-Za-z]|rehearsal|Requests fail/i);
  });

  test('the built page cannot send the key to another origin', async () => {
    const { page, errors } = await visit({ pets: 1 });
    await names(page).first().waitFor();
    const sent = page.evaluate(() => fetch('http://127.0.0.1:9/').catch(() => 'not sent'));
    expect(await sent).toBe('not sent');
    await expect
      .poll(() => errors, POLL)
      .toContainEqual(expect.stringContaining('policy violated: connect-src'));
  });

  test('the skip link leads past the form to the filter', async () => {
    const { page } = await visit({ pets: 1 });
    await names(page).first().waitFor();
    for (const key of ['Tab', 'Enter', 'Tab']) await page.keyboard.press(key);
    await expectFocus(page, 'Show animals of a category');
  });

  test('the address that npm run storefront prints shows the catalogue immediately', async () => {
    const dataDir = await createTemporaryFolder();
    const program = runNode(['--import', 'tsx', 'examples/storefront/serve.ts'], { DATA_DIR: dataDir });
    onTestFinished(async () => {
      program.child.kill('SIGTERM');
      await program.ended;
      await rm(dataDir, { recursive: true, force: true });
    });
    const [address] = await program.until(/http:\/\/127\.0\.0\.1:\d+\/#key=as_test_\w+/);
    const { page, origins, errors } = await openPage(storefront.browser.context);
    onTestFinished(() => page.close());
    await page.goto(address);
    await page.getByText('Bella').waitFor();
    expect([page.url(), errors]).toEqual([address.replace(/#.*/, ''), []]);
    expect([...origins].map((origin) => origin.replace(/^ws/, 'http'))).toEqual([new URL(address).origin]);
  });
});

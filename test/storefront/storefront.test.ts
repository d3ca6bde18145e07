import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openPage } from '../support/browser.js';
import { makeFolder } from '../support/folder.js';
import { startService } from '../support/harness.js';
import { runNode } from '../support/process.js';
import {
  announcement,
  badges,
  choose,
  createGate,
  expectFault,
  expectFocus,
  expectFocusOn,
  expectNoFaults,
  FILTER,
  fill,
  findBrowser,
  names,
  numbers,
  openStorefront,
  POLL,
  REFUSALS,
  type Storefront,
  type VisitOptions,
} from '../support/storefront.js';

const executable = findBrowser();

describe.skipIf(executable === undefined)('the storefront', { timeout: 60_000 }, () => {
  let storefront: Storefront;
  beforeAll(async () => {
    storefront = await openStorefront(executable);
  });
  afterAll(() => storefront?.close());

  const visit = (options?: VisitOptions) => storefront.visit(options);
  const inspect = (page: Page, name: string) => storefront.inspect(page, name);

  describe('its key', () => {
    test('is asked for, kept in the session of the tab only, and forgotten on request', async () => {
      const { page, service, ...watched } = await visit({ key: null, pets: 3 });
      const field = page.getByLabel('API key');
      await field.waitFor();
      await inspect(page, 'no-key');
      await page.getByRole('button', { name: 'Open the store' }).click();
      await expectFault(page, 'API key', 'Paste a key first.');
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
      expectNoFaults({ page, service, ...watched });
    });

    test('is taken from the address, which then forgets it', async () => {
      const { page, url } = await visit({ pets: 1 });
      await names(page).first().waitFor();
      expect(page.url()).toBe(url);
    });

    test('is said to be unknown when it is, and can be entered again', async () => {
      const visited = await visit({ key: 'as_test_nobody', pets: 1 });
      const { page, service } = visited;
      await expectFault(page, 'API key', /does not know this key/);
      await expectFocus(page, 'API key');
      await inspect(page, 'unknown-key');
      await page.keyboard.type(service.key);
      await page.keyboard.press('Enter');
      await names(page).first().waitFor();
      expectNoFaults(visited, REFUSALS);
    });

    test('is nowhere in what is built', async () => {
      const files = await readdir(storefront.outDir, { recursive: true, withFileTypes: true });
      const paths = files
        .filter((file) => file.isFile())
        .map(({ parentPath, name }) => join(parentPath, name));
      expect(paths.length).toBeGreaterThan(2);
      for (const path of paths)
        expect(await readFile(path, 'utf8')).not.toMatch(/as_(?:test|live)_[0-9A-Za-z]/);
    });

    test('cannot be sent to another origin from the built page', async () => {
      const { page, faults } = await visit({ pets: 1 });
      await names(page).first().waitFor();
      const sent = page.evaluate(() => fetch('http://127.0.0.1:9/').catch(() => 'not sent'));
      expect(await sent).toBe('not sent');
      await expect
        .poll(() => faults, POLL)
        .toContainEqual(expect.stringContaining('policy violated: connect-src'));
    });
  });

  describe('its catalogue', () => {
    test('shows what there is, loading first, and each status alone', async () => {
      const held = createGate();
      const visited = await visit({
        pets: 12,
        prepare: (page) => page.route('**/trpc/listPets*', held.pass),
      });
      const { page } = visited;
      await page.locator('.skeleton').first().waitFor();
      await inspect(page, 'loading');
      held.open();
      await names(page).nth(11).waitFor();
      expect(await page.getByRole('meter').getAttribute('aria-valuetext')).toBe('999,999 of 1,000,000 left');
      await inspect(page, 'catalogue');
      for (const status of ['Available', 'Pending', 'Sold']) {
        await choose(page, FILTER, status);
        await page.getByText('That is everyone: 4 animals.').waitFor();
        expect(await badges(page)).toEqual(Array(4).fill(status));
      }
      await inspect(page, 'filtered');
      expectNoFaults(visited);
    });

    test('says so when it is empty, or holds nothing of a status', async () => {
      const visited = await visit();
      const { page, service } = visited;
      await page.getByText('Nobody lives here yet').waitFor();
      await inspect(page, 'empty');
      await service.pets.create({ name: 'Ada', categoryId: 1, status: 'sold' });
      await choose(page, FILTER, 'Pending');
      await page.getByText('No animal is pending').waitFor();
      await inspect(page, 'empty-filter');
      await page.getByRole('button', { name: 'Show all animals' }).click();
      await page.getByText('Nobody lives here yet').waitFor();
      await expectFocusOn(page.getByRole('heading', { name: 'Catalogue' }));
      expectNoFaults(visited);
    });

    test('scrolls through 250 animals to the last, each shown once', async () => {
      const visited = await visit({ pets: 250 });
      const { page } = visited;
      await expect
        .poll(
          async () => {
            await page.mouse.wheel(0, 4_000);
            return page.getByText('That is everyone: 250 animals.').isVisible();
          },
          { timeout: 20_000 },
        )
        .toBe(true);
      expect(await numbers(page)).toEqual(Array.from({ length: 250 }, (_, index) => index + 1));
      expectNoFaults(visited);
    });

    test('goes on by its button where nothing is observed, an animal added meanwhile shown once', async () => {
      const { page } = await visit({
        pets: 45,
        prepare: (opened) =>
          opened.addInitScript(() => {
            window.IntersectionObserver = class extends IntersectionObserver {
              override observe(): void {}
            };
          }),
      });
      await names(page).nth(19).waitFor();
      await fill(page, { name: 'Last', category: 'Fish', status: 'Sold' });
      await page.getByRole('button', { name: 'Save animal' }).click();
      for (const shown of [21, 41, 46]) {
        await names(page)
          .nth(shown - 1)
          .waitFor();
        expect(await names(page).count()).toBe(shown);
        if (shown < 46) await page.getByRole('button', { name: 'Load more' }).press('Enter');
      }
      await page.getByText('That is everyone: 46 animals.').waitFor();
      expect(await page.getByRole('button', { name: 'Load more' }).count()).toBe(0);
      await expectFocusOn(page.locator('.card').filter({ hasText: 'No. 40' }));
      expect(await numbers(page)).toEqual([46, ...Array.from({ length: 45 }, (_, index) => index + 1)]);
    });

    test('keeps names as they are, however long and in whatever script', async () => {
      const odd = [
        'W'.repeat(200),
        `${'A rather long name of many words, '.repeat(5)}which ends at last`,
        'قطة جميلة, عمرها سنة',
        '👩‍👩‍👧‍👦🐕‍🦺'.repeat(12),
        '<b>Tom & "Jerry"</b>, {both}',
        ' two  spaces ',
      ];
      const service = await startService();
      onTestFinished(() => service.close());
      for (const [index, name] of odd.entries()) {
        await service.pets.create({ name, categoryId: index + 1, status: 'available' });
      }
      await service.pets.create({ name: 'Nobody', categoryId: -9, status: 'sold' });
      const visited = await visit({ service });
      const { page } = visited;
      await page.getByText('Category -9').waitFor();
      expect(await names(page).evaluateAll((all) => all.map((name) => name.textContent))).toEqual([
        ...odd,
        'Nobody',
      ]);
      await inspect(page, 'odd-names');
      expectNoFaults(visited);
    });
  });

  describe('adding an animal', () => {
    test('shows it at once as being saved, then as saved, and clears the form', async () => {
      const held = createGate();
      const visited = await visit({
        pets: 3,
        prepare: (page) => page.route('**/trpc/createPet*', held.pass),
      });
      const { page } = visited;
      await names(page).nth(2).waitFor();
      await fill(page, { name: 'Miso, Siamese, 4 months', category: 'Cats', status: 'Pending' });
      await page.getByRole('button', { name: 'Save animal' }).click();
      const first = page.locator('.card').first();
      await first.getByText('Saving…').waitFor();
      expect(await first.getAttribute('aria-busy')).toBe('true');
      await inspect(page, 'saving');
      held.open();
      await first.getByText('Just added').waitFor();
      expect(await first.getByRole('heading').textContent()).toBe('Miso, Siamese, 4 months');
      expect(await first.locator('.badge').textContent()).toBe('Pending');
      expect(await numbers(page)).toEqual([4, 1, 2, 3]);
      expect(await page.getByLabel('Name').inputValue()).toBe('');
      await expectFocus(page, 'Name');
      await announcement(page, 'Miso, Siamese, 4 months is in the catalogue').waitFor({ state: 'attached' });
      await inspect(page, 'added');
      await page.reload();
      await names(page).nth(3).waitFor();
      expect(await numbers(page)).toEqual([1, 2, 3, 4]);
      expectNoFaults(visited);
    });

    test('says so in the form when the filter hides it, and keeps what was typed meanwhile', async () => {
      const held = createGate();
      const { page } = await visit({
        pets: 3,
        prepare: (opened) => opened.route('**/trpc/createPet*', held.pass),
      });
      await names(page).nth(2).waitFor();
      await choose(page, FILTER, 'Sold');
      await page.getByText('That is everyone: 1 animal.').waitFor();
      await fill(page, { name: 'Otto', category: 'Dogs', status: 'Available' });
      await page.getByLabel('Name').press('Enter');
      await page.getByRole('button', { name: 'Saving…' }).waitFor();
      await page.getByLabel('Name').fill('Ada');
      held.open();
      await page.locator('.form-notice').getByText('Otto is in the catalogue.').waitFor();
      expect(await page.getByLabel('Name').inputValue()).toBe('Ada');
      expect(await badges(page)).toEqual(['Sold']);
      await choose(page, FILTER, 'All');
      await page.getByText('Just added').waitFor();
      expect(await numbers(page)).toEqual([4, 1, 2, 3]);
    });

    test('asks for what is missing beside its field before it sends anything', async () => {
      const { page, faults } = await visit({ pets: 1 });
      await names(page).first().waitFor();
      const sent: string[] = [];
      page.on('request', (request) => sent.push(request.url()));
      await page.getByRole('button', { name: 'Save animal' }).click();
      await expectFault(page, 'Name', 'Give it a name.');
      await expectFocus(page, 'Name');
      expect(await page.getByRole('group', { name: 'Category' }).textContent()).toContain(
        'Choose a category.',
      );
      await page.keyboard.type('Rex');
      await expect.poll(() => page.getByText('Give it a name.').count(), POLL).toBe(0);
      await expectFocus(page, 'Name');
      expect([sent, faults]).toEqual([[], []]);
    });

    test('shows what the service refuses beside its field and keeps all that was filled in', async () => {
      const visited = await visit({ pets: 3 });
      const { page } = visited;
      await names(page).nth(2).waitFor();
      const name = '🐕'.repeat(201);
      await fill(page, { name, category: '1.5', status: 'Sold' });
      await page.getByRole('button', { name: 'Save animal' }).click();
      await expectFault(page, 'Name', 'It must have 1 to 200 characters.');
      await expectFault(page, 'Number of the category', /^It must be an integer from/);
      await expectFocus(page, 'Name');
      expect(await page.getByLabel('Name').inputValue()).toBe(name);
      expect(await page.getByLabel('Number of the category').inputValue()).toBe('1.5');
      expect(
        await page.getByRole('group', { name: 'Status', exact: true }).getByLabel('Sold').isChecked(),
      ).toBe(true);
      expect(await numbers(page)).toEqual([1, 2, 3]);
      await inspect(page, 'field-faults');
      await page.getByLabel('Name').fill('Rex');
      await page.getByLabel('Number of the category').fill('15');
      await page.getByRole('button', { name: 'Save animal' }).click();
      await page.getByText('Just added').waitFor();
      expectNoFaults(visited, REFUSALS);
    });

    test('needs no mouse, nor does the filter', async () => {
      const visited = await visit({ pets: 3 });
      const { page } = visited;
      await names(page).nth(2).waitFor();
      await page.keyboard.press('Tab');
      expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to the catalogue');
      const press = async (...keys: string[]) => {
        for (const key of keys) await page.keyboard.press(key);
      };
      await press('Tab', 'Tab');
      await expectFocus(page, 'Name');
      await page.keyboard.type('Pearl');
      await press('Tab', 'Space', 'ArrowRight', 'Tab', 'ArrowRight', 'Enter');
      await page.getByText('Just added').waitFor();
      expect(await page.locator('.card').first().textContent()).toBe('Just addedCatsPearlPendingNo. 4');
      await expectFocus(page, 'Name');
      await press('Tab', 'Tab', 'Tab', 'Tab', 'ArrowRight');
      await page.getByText('That is everyone: 1 animal.').waitFor();
      expect(await badges(page)).toEqual(['Available']);
      expectNoFaults(visited);
    });
  });

  test('its skip link leads past the form to the filter', async () => {
    const { page } = await visit({ pets: 1 });
    await names(page).first().waitFor();
    for (const key of ['Tab', 'Enter', 'Tab']) await page.keyboard.press(key);
    await expectFocus(page, 'All');
  });

  test('the address that its start prints shows the catalogue at once', async () => {
    const dataDir = await makeFolder();
    const program = runNode(['--import', 'tsx', 'examples/storefront/start.ts'], { DATA_DIR: dataDir });
    onTestFinished(async () => {
      program.child.kill('SIGTERM');
      await program.ended;
      await rm(dataDir, { recursive: true, force: true });
    });
    const [address] = await program.until(/http:\/\/127\.0\.0\.1:\d+\/#key=as_test_\w+/);
    const { page, origins, faults } = await openPage(storefront.browser.context);
    onTestFinished(() => page.close());
    await page.goto(address);
    await page.getByText('Bella').waitFor();
    expect([page.url(), faults]).toEqual([address.replace(/#.*/, ''), []]);
    expect([...origins].map((origin) => origin.replace(/^ws/, 'http'))).toEqual([new URL(address).origin]);
  });
});

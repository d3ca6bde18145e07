import { describe, expect, test } from 'vitest';
import { findBrowser } from '../../packages/platform/test/support/browser.js';
import { setUpStorefront } from '../support/storefront.js';
import {
  announcement,
  badges,
  choose,
  createGate,
  expectFieldError,
  expectFocus,
  expectFocusOn,
  expectNoErrors,
  FAILED_REQUESTS,
  FILTER,
  fill,
  names,
  numbers,
  POLL,
} from '../support/storefront-page.js';

const executable = findBrowser();

describe.skipIf(executable === undefined)("the storefront's form", { timeout: 60_000 }, () => {
  const { visit, inspect } = setUpStorefront(executable);

  test('a new animal is shown while it is being saved, then as saved, and the form is cleared', async () => {
    const gate = createGate();
    const visited = await visit({
      pets: 3,
      prepare: (page) => page.route('**/trpc/createPet*', gate.pass),
    });
    const { page } = visited;
    await names(page).nth(2).waitFor();
    await fill(page, { name: 'Miso, Siamese, 4 months', category: 'Cats', status: 'Pending' });
    await page.getByRole('button', { name: 'Save animal' }).click();
    const first = page.locator('.card').first();
    await first.getByText('Saving…').waitFor();
    expect(await first.getAttribute('aria-busy')).toBe('true');
    await inspect(page, 'saving');
    gate.open();
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
    expectNoErrors(visited);
  });

  test('a category without a name is named with its first animal, and one that has a name keeps it', async () => {
    const visited = await visit({ pets: 3 });
    const { page } = visited;
    await names(page).nth(2).waitFor();
    await fill(page, { name: 'Speedy', category: '4711', status: 'Available' });
    await page.getByLabel('What the category is called').fill('Snails');
    await inspect(page, 'naming');
    await page.getByRole('button', { name: 'Save animal' }).click();
    await page.locator('.card-category', { hasText: 'Snails' }).waitFor();
    await choose(page, 'Category', 'Snails');
    await fill(page, { name: 'Hasty', category: '4711', status: 'Available' });
    await page.getByText('It is called Snails.').waitFor();
    expect(await page.getByLabel('What the category is called').count()).toBe(0);
    expectNoErrors(visited);
  });

  test('the end of a slow save does not take the focus from where the user has gone', async () => {
    const gate = createGate();
    const { page } = await visit({
      pets: 3,
      prepare: (opened) => opened.route('**/trpc/createPet*', gate.pass),
    });
    await names(page).nth(2).waitFor();
    await fill(page, { name: 'Miso', category: 'Cats', status: 'Pending' });
    await page.getByRole('button', { name: 'Save animal' }).click();
    await page.getByText('Saving…').first().waitFor();
    const filter = page.getByRole('group', { name: FILTER, exact: true }).getByLabel('All', { exact: true });
    await filter.focus();
    gate.open();
    await page.getByText('Just added').waitFor();
    await announcement(page, 'Miso is in the catalogue').waitFor({ state: 'attached' });
    await expectFocusOn(filter);
  });

  test('the form confirms an animal that the filter hides, and keeps what was typed meanwhile', async () => {
    const gate = createGate();
    const { page } = await visit({
      pets: 3,
      prepare: (opened) => opened.route('**/trpc/createPet*', gate.pass),
    });
    await names(page).nth(2).waitFor();
    await choose(page, FILTER, 'Sold');
    await page.getByText('That is everyone: 1 animal.').waitFor();
    await fill(page, { name: 'Otto', category: 'Dogs', status: 'Available' });
    await page.getByLabel('Name').press('Enter');
    await page.getByRole('button', { name: 'Saving…' }).waitFor();
    await page.getByLabel('Name').fill('Ada');
    gate.open();
    await page.locator('.form-notice').getByText('Otto is in the catalogue.').waitFor();
    expect(await page.getByLabel('Name').inputValue()).toBe('Ada');
    expect(await badges(page)).toEqual(['Sold']);
    await choose(page, FILTER, 'All');
    await page.getByText('Just added').waitFor();
    expect(await numbers(page)).toEqual([4, 1, 2, 3]);
  });

  test('missing fields are reported beside the field before anything is sent', async () => {
    const { page, errors } = await visit({ pets: 1 });
    await names(page).first().waitFor();
    const sent: string[] = [];
    page.on('request', (request) => sent.push(request.url()));
    await page.getByRole('button', { name: 'Save animal' }).click();
    await expectFieldError(page, 'Name', 'Give it a name.');
    await expectFocus(page, 'Name');
    expect(await page.getByRole('group', { name: 'Category' }).textContent()).toContain('Choose a category.');
    await page.keyboard.type('Rex');
    await expect.poll(() => page.getByText('Give it a name.').count(), POLL).toBe(0);
    await expectFocus(page, 'Name');
    expect([sent, errors]).toEqual([[], []]);
  });

  test('errors of all fields appear at once, in words that fit the form', async () => {
    const { page } = await visit({ pets: 1 });
    await names(page).first().waitFor();
    const sent: string[] = [];
    page.on('request', (request) => sent.push(request.url()));
    const long = '🐕'.repeat(201);
    for (const [name, nameError, category, categoryError] of [
      ['', 'Give it a name.', '', 'Type the number of the category.'],
      [' \u3000', 'Give it a name.', '1.5', 'Type a whole number, such as 12.'],
      [long, 'Use at most 200 characters; these are 201.', 'cat', 'Type a whole number, such as 12.'],
      [long, 'Use at most 200 characters; these are 201.', '0x10', 'Type a whole number, such as 12.'],
      ['', 'Give it a name.', '9007199254740993', 'Type a number with fewer digits.'],
    ] as const) {
      await page.getByLabel('Name').fill(name);
      await choose(page, 'Category', 'Another category');
      await page.getByLabel('Number of the category').fill(category);
      await page.getByRole('button', { name: 'Save animal' }).click();
      await expectFieldError(page, 'Name', nameError);
      await expectFieldError(page, 'Number of the category', categoryError);
      await expectFocus(page, 'Name');
    }
    await page.getByLabel('Name').fill('Rex');
    await page.getByRole('button', { name: 'Save animal' }).click();
    await expectFocus(page, 'Number of the category');
    expect(sent).toEqual([]);
  });

  test("the service's validation errors appear beside their fields, and the form keeps its contents", async () => {
    const visited = await visit({ pets: 3 });
    const { page } = visited;
    await names(page).nth(2).waitFor();
    const name = 'Re\0x';
    await fill(page, { name, category: '15', status: 'Sold' });
    await page.getByRole('button', { name: 'Save animal' }).click();
    await expectFieldError(page, 'Name', 'It must not contain a NUL character.');
    await expectFocus(page, 'Name');
    expect(await page.getByLabel('Name').inputValue()).toBe(name);
    expect(await page.getByLabel('Number of the category').inputValue()).toBe('15');
    expect(
      await page.getByRole('group', { name: 'Status', exact: true }).getByLabel('Sold').isChecked(),
    ).toBe(true);
    expect(await numbers(page)).toEqual([1, 2, 3]);
    await inspect(page, 'field-errors');
    await page.getByLabel('Name').fill('Rex');
    await page.getByRole('button', { name: 'Save animal' }).click();
    await page.getByText('Just added').waitFor();
    expectNoErrors(visited, FAILED_REQUESTS);
  });

  test('the confirmation fades after a while, but not while the pointer is on it, and the announcement stays', async () => {
    const { page } = await visit({ pets: 1 });
    await names(page).first().waitFor();
    const confirmation = page.locator('.form-notice[data-state=saved]');
    /** The fading that is scheduled or running: how long it waits and takes */
    const fading = () =>
      confirmation.evaluate((notice) =>
        notice.getAnimations().map((animation) => {
          const { delay, duration } = animation.effect?.getTiming() ?? {};
          return { delay, duration };
        }),
      );
    const save = async () => {
      await fill(page, { name: 'Miso', category: 'Cats', status: 'Sold' });
      await page.getByRole('button', { name: 'Save animal' }).click();
      await confirmation.waitFor();
    };
    for (const reducedMotion of ['no-preference', 'reduce'] as const) {
      await page.emulateMedia({ reducedMotion });
      await save();
      const duration = reducedMotion === 'reduce' ? 0 : 500;
      expect(await fading()).toEqual([{ delay: 8_000, duration }]);
      await confirmation.hover();
      await expect.poll(fading, POLL).toEqual([]);
      await page.mouse.move(0, 0);
      await expect.poll(fading, POLL).toEqual([{ delay: 8_000, duration }]);
      await confirmation.waitFor({ state: 'detached' });
      await announcement(page, 'Miso is in the catalogue').waitFor({ state: 'attached' });
    }
  });

  test('form and filter work with the keyboard alone', async () => {
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
    expect(await page.locator('.card').first().textContent()).toBe(
      'Just addedCatsPearlPendingNo. 4Show its orderMark as soldMark as available',
    );
    await expectFocus(page, 'Name');
    await press('Tab', 'Tab', 'Tab');
    await expectFocusOn(page.getByRole('button', { name: 'Save animal' }));
    const views = page.getByRole('navigation', { name: 'What to see' }).getByRole('button');
    for (const view of await views.all()) {
      await press('Tab');
      await expectFocusOn(view);
    }
    // Past the choice of a category
    await press('Tab', 'Tab');
    await expectFocus(page, 'All');
    await press('ArrowRight');
    await page.getByText('That is everyone: 1 animal.').waitFor();
    expect(await badges(page)).toEqual(['Available']);
    expectNoErrors(visited);
  });
});

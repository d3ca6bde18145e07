import { describe, expect, onTestFinished, test } from 'vitest';
import { findBrowser } from '../../packages/platform/test/support/browser.js';
import { startService } from '../support/service.js';
import { setUpStorefront } from '../support/storefront.js';
import {
  badges,
  choose,
  createGate,
  expectFocusOn,
  expectNoErrors,
  FILTER,
  fill,
  leftEdges,
  names,
  numbers,
} from '../support/storefront-page.js';

const executable = findBrowser();

describe.skipIf(executable === undefined)("the storefront's catalogue", { timeout: 60_000 }, () => {
  const { visit, inspect } = setUpStorefront(executable);

  test('the catalogue shows a loading state, then all animals, and filters by status', async () => {
    const gate = createGate();
    const visited = await visit({
      pets: 12,
      prepare: (page) => page.route('**/trpc/*listPets*', gate.pass),
    });
    const { page } = visited;
    await page.locator('.skeleton').first().waitFor();
    await inspect(page, 'loading');
    gate.open();
    await names(page).nth(11).waitFor();
    expect(await page.getByRole('meter').getAttribute('aria-valuetext')).toBe('999,997 of 1,000,000 left');
    // As screen readers hear it: without a space in front of the comma.
    await page.getByRole('heading', { name: 'Animal 1, of the test', exact: true }).waitFor();
    await inspect(page, 'catalogue');
    for (const status of ['Available', 'Pending', 'Sold']) {
      await choose(page, FILTER, status);
      await page.getByText('That is everyone: 4 animals.').waitFor();
      expect(await badges(page)).toEqual(Array(4).fill(status));
    }
    await inspect(page, 'filtered');
    expectNoErrors(visited);
  });

  test('the catalogue says when it is empty or no animal has the chosen status', async () => {
    const visited = await visit();
    const { page, service } = visited;
    await page.getByText('Nobody lives here yet').waitFor();
    await inspect(page, 'empty');
    await service.items.create({ name: 'Ada', categoryId: 1, status: 'sold' });
    await choose(page, FILTER, 'Pending');
    await page.getByText('No animal is pending').waitFor();
    await inspect(page, 'empty-filter');
    await page.getByRole('button', { name: 'Show all animals' }).click();
    await page.getByText('Nobody lives here yet').waitFor();
    await expectFocusOn(page.getByRole('heading', { name: 'Catalogue' }));
    expectNoErrors(visited);
  });

  test('the filter is in the address: it can be shared, survives a reload, and back and forward follow it', async () => {
    const visited = await visit({ pets: 12 });
    const { page, url, service } = visited;
    const expectShown = async (choice: string, search: string) => {
      const count = choice === 'All' ? 12 : 4;
      await page.getByText(`That is everyone: ${count} animals.`).waitFor();
      expect(page.url()).toBe(url + search);
      const filter = page.getByRole('group', { name: FILTER, exact: true });
      expect(await filter.getByLabel(choice, { exact: true }).isChecked()).toBe(true);
      if (choice !== 'All') expect(await badges(page)).toEqual(Array(4).fill(choice));
    };
    await expectShown('All', '');
    await choose(page, FILTER, 'Sold');
    await expectShown('Sold', '?status=sold');
    await choose(page, FILTER, 'Pending');
    await expectShown('Pending', '?status=pending');
    await page.goBack();
    await expectShown('Sold', '?status=sold');
    await page.goBack();
    await expectShown('All', '');
    await page.goForward();
    await expectShown('Sold', '?status=sold');
    await page.reload();
    await expectShown('Sold', '?status=sold');
    await choose(page, FILTER, 'All');
    await expectShown('All', '');
    // As someone with a key of their own opens a shared address.
    await page.goto(`${url}?status=pending#key=${service.key}`);
    await expectShown('Pending', '?status=pending');
    await page.goto(`${url}?status=lost`);
    await expectShown('All', '?status=lost');
    expectNoErrors(visited);
  });

  test('scrolling shows each of 250 animals exactly once', async () => {
    const visited = await visit({ pets: 250 });
    const { page } = visited;
    await expect
      .poll(
        async () => {
          await page.mouse.wheel(0, 4_000);
          return page.getByText('That is everyone: 250 animals.').isVisible();
        },
        { timeout: 45_000 },
      )
      .toBe(true);
    expect(await numbers(page)).toEqual(Array.from({ length: 250 }, (_, index) => index + 1));
    expectNoErrors(visited);
  });

  test('without scroll detection a button loads more pages, and an animal added meanwhile appears once', async () => {
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

  test('names are shown unchanged, whatever their length and script', async () => {
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
      await service.items.create({ name, categoryId: index + 1, status: 'available' });
    }
    await service.items.create({ name: 'Nobody', categoryId: -9, status: 'sold' });
    const visited = await visit({ service });
    const { page } = visited;
    await page.getByText('Category -9').waitFor();
    expect(await names(page).evaluateAll((all) => all.map((name) => name.textContent))).toEqual([
      ...odd,
      'Nobody',
    ]);
    await inspect(page, 'odd-names');
    expectNoErrors(visited);
  });

  test('a name that cannot be wrapped between words takes three lines at most, at every width', async () => {
    const unbroken = [
      'W'.repeat(200),
      'W'.repeat(50),
      '猫'.repeat(200),
      `${'x'.repeat(38)}, ${'y'.repeat(100)}`,
    ];
    const broken = `${'A rather long name of many words '.repeat(5)}which ends at last`;
    const { page } = await visitNames([...unbroken, broken]);
    await names(page).nth(4).waitFor();
    for (const width of [320, 768, 1280, 1440]) {
      await page.setViewportSize({ width, height: 800 });
      const lines = await names(page).evaluateAll((all) =>
        all.map((name) =>
          Math.round(name.clientHeight / Number.parseFloat(getComputedStyle(name).lineHeight)),
        ),
      );
      expect([width, lines.slice(0, 4).map((count) => count <= 3)]).toEqual([
        width,
        [true, true, true, true],
      ]);
      expect([width, (lines[4] ?? 0) > 3]).toEqual([width, true]);
      expect(await names(page).first().getAttribute('title')).toBe(unbroken[0]);
    }
  });

  test('directional controls in a name do not reorder the text around it', async () => {
    const { page } = await visitNames(['\u202EOtto, cat of the house', '\u2067Ada, dog of the garden']);
    await names(page).nth(1).waitFor();
    const inOrder = (edges: number[]) =>
      edges.every((edge, index) => index === 0 || edge > (edges[index - 1] ?? 0));
    expect(inOrder(await leftEdges(names(page).nth(0), ['cat', 'of', 'the', 'house']))).toBe(true);
    expect(inOrder(await leftEdges(names(page).nth(1), ['dog', 'of', 'the', 'garden']))).toBe(true);
    for (const control of ['\u202E', '\u2067', '\u202B']) {
      await fill(page, { name: `${control}Miso`, category: 'Cats', status: 'Sold' });
      await page.getByRole('button', { name: 'Save animal' }).click();
      const words = ['is', 'in', 'the', 'catalogue'];
      const confirmation = page.locator('.form-notice').filter({ hasText: `${control}Miso` });
      await confirmation.waitFor();
      expect([control, inOrder(await leftEdges(confirmation, words))]).toEqual([control, true]);
      const announced = page.getByRole('status').filter({ hasText: 'is in the catalogue' });
      expect([control, inOrder(await leftEdges(announced, words))]).toEqual([control, true]);
    }
  });

  async function visitNames(list: readonly string[]) {
    const service = await startService();
    onTestFinished(() => service.close());
    for (const name of list) await service.items.create({ name, categoryId: 1, status: 'available' });
    return visit({ service });
  }
});

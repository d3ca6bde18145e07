import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Visit } from './storefront.js';

/** For conditions that Playwright cannot wait for */
export const POLL = { timeout: 20_000 };

/** Chromium's own console message for error responses and failed requests */
export const FAILED_REQUESTS = /^console: Failed to load resource: /;

/** Expects no errors in the page other than those given, and no requests to other origins. */
export function expectNoErrors({ origins, errors, url }: Visit, expected = /^$/): void {
  expect(errors.filter((error) => !expected.test(error))).toEqual([]);
  expect([...origins]).toEqual([new URL(url).origin]);
}

/** Holds requests back until `open` is called. */
export function createGate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const pass = async (route: { continue(): Promise<void> }) => {
    await opened;
    await route.continue();
  };
  return { pass, open: () => open() };
}

export function names(page: Page) {
  return page.getByRole('heading', { level: 3 });
}

/** The left edge of each word in the window; NaN for one that is not displayed. Shows in which order they appear. */
export function leftEdges(locator: Locator, words: readonly string[]): Promise<number[]> {
  return locator.evaluate((element, wanted) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const edges = new Map<string, number>();
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      for (const word of wanted) {
        const start = (node.textContent ?? '').indexOf(word);
        if (start < 0) continue;
        const range = document.createRange();
        range.setStart(node, start);
        range.setEnd(node, start + word.length);
        edges.set(word, range.getBoundingClientRect().left);
      }
    }
    return wanted.map((word) => edges.get(word) ?? Number.NaN);
  }, words);
}

export function badges(page: Page): Promise<string[]> {
  return page.locator('.badge').allTextContents();
}

/** The ids of the displayed animals, in order. */
export async function numbers(page: Page): Promise<number[]> {
  const texts = await page.locator('.card-number').allTextContents();
  return texts.map((text) => Number(text.replace('No. ', '')));
}

export async function fill(
  page: Page,
  { name, category, status }: Record<'name' | 'category' | 'status', string>,
) {
  await page.getByLabel('Name').fill(name);
  const isNumber = Number.isFinite(Number(category));
  await choose(page, 'Category', isNumber ? 'Another category' : category);
  if (isNumber) await page.getByLabel('Number of the category').fill(category);
  await choose(page, 'Status', status);
}

export const FILTER = 'Show animals by status';

export async function choose(page: Page, group: string, choice: string): Promise<void> {
  await page.getByRole('group', { name: group, exact: true }).getByLabel(choice, { exact: true }).check();
}

/** The announcement to screen readers */
export function announcement(page: Page, text: string | RegExp) {
  return page.getByRole('status').getByText(text);
}

/** Expects that the field is marked as invalid and that its description contains the error. */
export async function expectFieldError(page: Page, label: string, error: string | RegExp): Promise<void> {
  const field = page.getByLabel(label, { exact: true });
  await page.locator('[aria-invalid=true]').first().waitFor();
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  const ids = (await field.getAttribute('aria-describedby'))?.split(' ') ?? [];
  const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).textContent()));
  expect(texts).toContainEqual(typeof error === 'string' ? error : expect.stringMatching(error));
}

export function expectFocus(page: Page, label: string): Promise<void> {
  return expectFocusOn(page.getByLabel(label, { exact: true }));
}

export async function expectFocusOn(locator: Locator): Promise<void> {
  await expect.poll(() => locator.evaluate((element) => element === document.activeElement), POLL).toBe(true);
}

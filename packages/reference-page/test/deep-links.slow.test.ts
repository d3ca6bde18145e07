import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GUIDES_FOLDER, listGuides } from '../../../test/guides/code-blocks.js';
import { type Browser, findBrowser, launchBrowser, openPage } from '../../platform/test/support/browser.js';
import { startService, type TestService } from '../../platform/test/support/test-service.js';

interface Section {
  readonly title: string;
  readonly address: string;
}

/** A page takes 10 s on a busy machine, and may take longer where that is slow, too. */
const RENDERING_TIMEOUT_MS = 60_000;
/** More than all that a test waits for */
const PAGE_TIMEOUT_MS = 300_000;
/** Scalar goes on rendering after it has taken the place of the text. */
const WATCH_AFTERWARDS_MS = 500;
/** A heading above this is what is read; narrow windows have a header above it. */
const READING_TOP_PX = 100;
/** How far above the window a heading may begin, because its box is taller than its letters */
const TOLERANCE_PX = 8;
const WIDTHS_PX = [1440, 390];

const load = (path: string) => import(pathToFileURL(path).href);
const { prepareGuides } = await load('packages/reference-page/src/build/guides.js');
const { listBeginnings, toSections } = await load('packages/reference-page/src/search.js');

const executable = findBrowser();
const targets = await listTargets();

/** The address and the heading of the tags, operations and guides that come first and last: a page takes many seconds. */
async function listTargets(): Promise<[address: string, title: string][]> {
  const document = JSON.parse(await readFile('docs/openapi.json', 'utf8'));
  const guides = await Promise.all(
    listGuides().map(async (name) => ({ name, text: await readFile(join(GUIDES_FOLDER, name), 'utf8') })),
  );
  const beginnings: Section[] = listBeginnings(prepareGuides(guides).sections);
  const tags: Section[] = document.tags.map(({ name }: { name: string }) => ({
    title: name,
    address: `#tag/${name.toLowerCase()}`,
  }));
  const kinds = [tags, toSections(document) as Section[], beginnings];
  const sections = kinds.flatMap((kind) => [...kind.slice(0, 1), ...kind.slice(-1)]);
  return sections.map(({ address, title }) => [address, title]);
}

/**
 * One page in some hundred has never finished rendering, on a busy machine. Its cause is not known, so such a page is opened
 * again, and its state is printed.
 */
const OPTIONS = { timeout: PAGE_TIMEOUT_MS, retry: 2 };

describe.skipIf(executable === undefined)('a link, opened cold', OPTIONS, () => {
  let service: TestService;
  let browser: Browser;

  beforeAll(async () => {
    service = await startService();
    browser = await launchBrowser(executable ?? '');
  }, PAGE_TIMEOUT_MS);
  afterEach(async () => {
    for (const page of browser.context.pages()) await page.close();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  async function openCold(address: string, width: number): Promise<Page> {
    const { page, errors } = await openPage(browser.context);
    await page.setViewportSize({ width, height: 900 });
    await page.goto(`${service.url}/docs${address}`, { waitUntil: 'commit' });
    const rendered = page.locator('body:has(#reference):not(:has(.text))');
    await rendered.waitFor({ timeout: RENDERING_TIMEOUT_MS }).catch(async (error) => {
      console.error(`${address} was not rendered, ${width} pixels wide:`, errors, await readState(page));
      throw error;
    });
    return page;
  }

  /** What a page that does not finish has loaded and rendered so far */
  const readState = (page: Page) =>
    Promise.race([
      page.evaluate(() => ({
        visibility: document.visibilityState,
        scrolled: scrollY,
        loaded: performance.getEntriesByType('resource').map(({ name }) => name),
        rendered: [...document.querySelectorAll('#reference :is(section, [id])')].map(({ id }) => id),
      })),
      new Promise((resolve) => setTimeout(resolve, 10_000, 'it does not answer')),
    ]);

  const readTopHeading = (page: Page) =>
    page.locator('main :is(h1, h2, h3)').evaluateAll(
      (headings, [from = 0, to = 0]) =>
        headings
          .filter((heading) => heading.checkVisibility())
          .find((heading) => {
            const { top } = heading.getBoundingClientRect();
            return from < top && top < to;
          })
          ?.textContent?.trim(),
      [-TOLERANCE_PX, READING_TOP_PX],
    );

  test.each(targets)('to %s has "%s" at the top of a wide and a narrow window', async (address, title) => {
    const openAndRead = async (width: number) => {
      const page = await openCold(address, width);
      await expect.poll(() => readTopHeading(page), { message: `${width} pixels wide` }).toBe(title);
      await page.waitForTimeout(WATCH_AFTERWARDS_MS);
      const heading = await readTopHeading(page);
      await page.close();
      return heading;
    };
    // Two pages render at once: a machine with two cores takes half as long.
    expect(await Promise.all(WIDTHS_PX.map(openAndRead))).toEqual(WIDTHS_PX.map(() => title));
  });
});

import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Browser, findBrowser, launchBrowser, openPage } from '../../platform/test/support/browser.js';
import { startService, type TestService } from '../../platform/test/support/test-service.js';

/** A slow machine that is busy, too, takes its time to run Scalar. */
const PAGE_TIMEOUT_MS = 300_000;
/** More than all that a test waits for */
const OPTIONS = { timeout: 3 * PAGE_TIMEOUT_MS };
/** Scalar goes on rendering after it has taken the place of the text. */
const WATCH_AFTERWARDS_MS = 3_000;

interface Frame {
  /** Since the navigation, in milliseconds */
  readonly at: number;
  /** Whether the browser has come to the main column: on a busy machine, it paints what is before it first. */
  readonly isParsed: boolean;
  readonly hasText: boolean;
  /** Whether Scalar's page has taken the place of the text */
  readonly isReplaced: boolean;
}

const executable = findBrowser();

describe.skipIf(executable === undefined)('the text of the page', OPTIONS, () => {
  let service: TestService;
  let browser: Browser;

  beforeAll(async () => {
    service = await startService();
    browser = await launchBrowser(executable ?? '');
  }, PAGE_TIMEOUT_MS);
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  async function open(hash: string, width: number, slowdown = 1): Promise<Page> {
    const { page } = await openPage(browser.context);
    await page.setViewportSize({ width, height: 900 });
    const session = await browser.context.newCDPSession(page);
    await session.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
    await page.addInitScript(watchFrames);
    await page.goto(`${service.url}/docs${hash}`, { waitUntil: 'commit' });
    return page;
  }

  async function untilReplaced(page: Page): Promise<void> {
    await page.locator('body:has(#reference):not(:has(.text))').waitFor({ timeout: PAGE_TIMEOUT_MS });
  }

  const readFrames = (page: Page) => page.evaluate(() => Reflect.get(window, 'watchedFrames') as Frame[]);

  test.each([
    ['', 1440, 1],
    ['', 1440, 4],
    ['', 390, 4],
    ['#description/rate-limits', 1440, 1],
    ['#tag/pets/POST/pets', 390, 4],
  ])('is in sight in every frame, at %j, %i pixels wide, %i times slower', async (hash, width, slowdown) => {
    const page = await open(hash, width, slowdown);
    await untilReplaced(page);
    await page.waitForTimeout(WATCH_AFTERWARDS_MS);
    const countReplaced = async () => (await readFrames(page)).filter(({ isReplaced }) => isReplaced).length;
    await expect.poll(countReplaced, { timeout: PAGE_TIMEOUT_MS }).toBeGreaterThan(10);
    const paintedAt = await page.evaluate(
      () => performance.getEntriesByName('first-paint')[0]?.startTime ?? 0,
    );
    const painted = (await readFrames(page)).filter(({ at, isParsed }) => at >= paintedAt && isParsed);
    expect(painted.filter(({ isReplaced }) => !isReplaced).length).toBeGreaterThan(1);
    expect(painted.filter(({ hasText }) => !hasText)).toEqual([]);
    await page.close();
  });

  test.each([
    ['Pagination', '', 1440],
    ['Pagination', '', 390],
    ['Pagination', '#tag/pets/POST/pets', 1440],
    ['Add an animal', '', 1440],
  ])('%s stays where it is when it is read, at %j, %i pixels wide', async (name, hash, width) => {
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    await browser.context.route(/scalar-\d/, async (route) => {
      await released;
      await route.continue();
    });
    const page = await open(hash, width);
    onTestFinished(() => browser.context.unroute(/scalar-\d/));
    await page.locator('.text .copy-block').first().waitFor({ state: 'attached' });
    const heading = page.getByRole('heading', { name, exact: true });
    await heading.evaluate((element) => element.scrollIntoView());
    const before = await heading.boundingBox();
    release();
    await untilReplaced(page);
    await page.waitForTimeout(WATCH_AFTERWARDS_MS);
    const after = await heading.boundingBox();
    expect(Math.abs(Number(after?.y) - Number(before?.y))).toBeLessThan(8);
    await page.close();
  });
});

/** Runs in the page: writes down of every frame whether there is text in the main column. */
function watchFrames(): void {
  const frames: Frame[] = [];
  let isParsed = false;
  Object.assign(window, { watchedFrames: frames });
  const { port1: before, port2: after } = new MessageChannel();
  // What runs next after the callbacks of a frame sees what has been painted.
  after.onmessage = () => {
    isParsed ||= Boolean(document.querySelector('main')?.textContent.trim());
    frames.push({
      at: performance.now(),
      isParsed,
      hasText: [...document.querySelectorAll('main')].some(hasTextInSight),
      isReplaced: document.querySelector('.text') === null,
    });
    requestAnimationFrame(() => before.postMessage(undefined));
  };
  requestAnimationFrame(() => before.postMessage(undefined));

  /** Looks at points of the column, from the top, and at the text of the element that is seen there. */
  function hasTextInSight(main: Element): boolean {
    const { left, width } = main.getBoundingClientRect();
    for (let y = 0; y < innerHeight; y += 8) {
      for (let x = left; x < left + width; x += 32) {
        const element = document.elementFromPoint(x, y);
        if (element !== null && main.contains(element) && hasTextAt(element, x, y)) return true;
      }
    }
    return false;
  }

  function hasTextAt(element: Element, x: number, y: number): boolean {
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    return [...element.childNodes].some((node) => {
      if (node.nodeType !== Node.TEXT_NODE || node.textContent?.trim() === '') return false;
      const range = document.createRange();
      range.selectNodeContents(node);
      return [...range.getClientRects()].some(
        ({ left, top, right, bottom }) => left <= x && x <= right && top <= y && y <= bottom,
      );
    });
  }
}

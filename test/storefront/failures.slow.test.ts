import { createLimiter } from '@animal-store/limits';
import type { Resource } from '@animal-store/platform/operations';
import { createCaller } from '@animal-store/platform/testing';
import { pino } from 'pino';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findBrowser } from '../../packages/platform/test/support/browser.js';
import { WINDOWS } from '../../src/definition/plans.js';
import type { PetStore } from '../../src/pets/store.js';
import { resources } from '../../src/router.js';
import { createTestDatabase, startService } from '../support/service.js';
import { addPets, setUpStorefront } from '../support/storefront.js';
import {
  announcement,
  choose,
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

describe.skipIf(executable === undefined)('the storefront, when calls fail', { timeout: 120_000 }, () => {
  const storefront = setUpStorefront(executable);
  const { visit, inspect } = storefront;
  beforeAll(async () => {
    // Time passes as usual until a test skips some.
    await storefront.browser.context.clock.install();
  });

  /**
   * Visits with a key of four requests per minute, of which some are used up. The page starts with three. `skip` advances the clocks of the
   * service and the page together.
   */
  async function visitLimited(used: number, pets: number) {
    let skippedMs = 0;
    const clock = () => Date.now() + skippedMs;
    const limiter = await createLimiter({
      windows: WINDOWS,
      redisUrls: [],
      log: pino({ level: 'silent' }),
      clock,
    });
    const service = await startService({ limiter, now: clock });
    onTestFinished(() => service.close());
    const limits = { plan: 'enterprise', perMinute: 4, perDay: 1_000 } as const;
    const { key } = await service.keys.create({ name: 'limited', expiresAt: null, ...limits });
    await addPets(service, pets);
    const call = createCaller({ url: service.url, key });
    for (let count = 0; count < used; count += 1) await call('/v1/pets');
    const visited = await visit({ service, key });
    const skip = async (seconds: number) => {
      skippedMs += seconds * 1_000;
      await visited.page.clock.fastForward(seconds * 1_000);
    };
    return { ...visited, skip };
  }

  test('after a 429 it counts down and continues by itself', async () => {
    const { skip, ...visited } = await visitLimited(4, 3);
    const { page } = visited;
    await page.getByRole('region', { name: 'A short pause' }).waitFor();
    await page
      .getByRole('timer')
      .getByText(/^(1:00|0:5\d)$/)
      .waitFor();
    expect(await page.getByRole('meter').getAttribute('aria-valuetext')).toBe('0 of 4 left');
    await expectEmptyGauge(page);
    await announcement(page, /A short pause.* seconds/).waitFor({ state: 'attached' });
    expect(await page.getByRole('button', { name: 'Try now' }).count()).toBe(0);
    await inspect(page, 'limited');
    await skip(30);
    await page
      .getByRole('timer')
      .getByText(/^0:[0-2]\d$/)
      .waitFor();
    await skip(31);
    await names(page).nth(2).waitFor();
    expect(await page.getByRole('region', { name: 'A short pause' }).count()).toBe(0);
    expectNoErrors(visited, FAILED_REQUESTS);
  });

  test('when the requests of a day are used up, it does not speak of a short pause', async () => {
    const service = await startService();
    onTestFinished(() => service.close());
    const limits = { plan: 'enterprise', perMinute: 5, perDay: 2 } as const;
    const { key } = await service.keys.create({ name: 'limited', expiresAt: null, ...limits });
    await createCaller({ url: service.url, key })('/v1/pets');
    const { page } = await visit({ service, key });
    await page.getByRole('region', { name: 'Enough for one day' }).waitFor();
    await page
      .getByRole('timer')
      .getByText(/^(24:00:00|23:59:\d\d)$/)
      .waitFor();
    await announcement(page, /Enough for one day.* 24 hours/).waitFor({ state: 'attached' });
    expect(await page.getByText('A short pause').count()).toBe(0);
  });

  /** The ring has the colour of the page's other lines all around. */
  async function expectEmptyGauge(page: Page) {
    expect(await page.locator('.gauge .arc').count()).toBe(0);
    const stroke = await page.locator('.gauge .track').evaluate((ring) => getComputedStyle(ring).stroke);
    const line = await page.locator('.masthead').evaluate((head) => getComputedStyle(head).borderBottomColor);
    expect(stroke).toBe(line);
  }

  test('after a 429 for a further page it keeps the earlier pages and continues with it', async () => {
    const { skip, page, ...watched } = await visitLimited(1, 30);
    await names(page).nth(19).waitFor();
    await page.keyboard.press('End');
    await page.getByRole('region', { name: 'A short pause' }).waitFor();
    expect(await names(page).count()).toBe(20);
    await page.getByRole('region', { name: 'A short pause' }).scrollIntoViewIfNeeded();
    await inspect(page, 'limited-further');
    await skip(61);
    await page.getByText('That is everyone: 30 animals.').waitFor();
    expect(await numbers(page)).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
    expectNoErrors({ page, ...watched }, FAILED_REQUESTS);
  });

  test('after a 429 for a new animal it removes the card, keeps the form, and can save after the wait', async () => {
    const { skip, page, ...watched } = await visitLimited(1, 3);
    await names(page).nth(2).waitFor();
    await fill(page, { name: 'Miso', category: 'Cats', status: 'Available' });
    await page.getByRole('button', { name: 'Save animal' }).click();
    await page.locator('.form-notice').getByText('Not saved. A short pause.').waitFor();
    expect(await numbers(page)).toEqual([1, 2, 3]);
    expect(await page.getByLabel('Name').inputValue()).toBe('Miso');
    const button = page.getByRole('button', { name: /^Save again in/ });
    expect(await button.getAttribute('aria-disabled')).toBe('true');
    await inspect(page, 'limited-save');
    await skip(61);
    await page.getByRole('button', { name: 'Save animal' }).click();
    await page.getByText('Just added').waitFor();
    expect(await numbers(page)).toEqual([4, 1, 2, 3]);
    expectNoErrors({ page, ...watched }, FAILED_REQUESTS);
  });

  test('with no request left, the buttons of the cards are off until the next window', async () => {
    const { skip, page, ...watched } = await visitLimited(1, 3);
    await names(page).nth(2).waitFor();
    const sell = page.getByRole('button', { name: /^Mark as sold/ }).first();
    await expect.poll(() => sell.getAttribute('aria-disabled'), POLL).toBe('true');
    await skip(61);
    await expect.poll(() => sell.getAttribute('aria-disabled'), POLL).toBe('false');
    await sell.click();
    await page.locator('.card-note').waitFor();
    expectNoErrors({ page, ...watched });
  });

  test('during a ban it counts down and continues by itself', async () => {
    const { skip, page, ...watched } = await visitLimited(8, 3);
    await page.getByRole('region', { name: 'This key is resting' }).waitFor();
    await page
      .getByRole('timer')
      .getByText(/^(5:00|4:5\d)$/)
      .waitFor();
    await inspect(page, 'banned');
    await skip(301);
    await names(page).nth(2).waitFor();
    expectNoErrors({ page, ...watched }, FAILED_REQUESTS);
  });

  test('after an internal error it shows the message with its request id, and retries on request', async () => {
    const working = await startService();
    onTestFinished(() => working.close());
    let isBroken = true;
    const list: PetStore['list'] = (page) =>
      isBroken ? Promise.reject(new TypeError('broken')) : working.items.list(page);
    const broken = await startService({
      resources: resources.map((resource: Resource) =>
        resource.name === 'pets'
          ? { ...resource, createStore: (database) => ({ ...resource.createStore(database), list }) }
          : resource,
      ),
    });
    onTestFinished(() => broken.close());
    await addPets(working, 3);
    const visited = await visit({ service: broken });
    const { page } = visited;
    await page.getByRole('region', { name: 'That did not work' }).waitFor();
    await page
      .getByText(/^Something went wrong inside the service.* It is [0-9a-f-]{36}\.$/)
      .first()
      .waitFor();
    await inspect(page, 'internal-error');
    isBroken = false;
    await page.getByRole('button', { name: 'Try now' }).click();
    await names(page).nth(2).waitFor();
    await expectFocusOn(page.getByRole('heading', { name: 'Catalogue' }));
    expectNoErrors(visited, FAILED_REQUESTS);
  });

  test('while the service is down it says so, retries by itself, and continues when it is back', async () => {
    const databaseUrl = await createTestDatabase();
    const before = await startService({ databaseUrl });
    const visited = await visit({ service: before, pets: 12 });
    const { page } = visited;
    await names(page).nth(11).waitFor();
    await before.close();
    await choose(page, FILTER, 'Sold');
    await page.getByRole('region', { name: 'The store cannot be reached' }).waitFor();
    await inspect(page, 'unavailable');
    const again = await startService({ databaseUrl, port: before.port });
    onTestFinished(() => again.close());
    await page.getByText('That is everyone: 4 animals.').waitFor();
    expect(await page.getByRole('region', { name: 'The store cannot be reached' }).count()).toBe(0);
    expectNoErrors(visited, FAILED_REQUESTS);
  });
});

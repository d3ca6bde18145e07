import { pino } from 'pino';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createLimiter } from '../../src/limits/limiter.js';
import { createOrderStore } from '../../src/orders/store.js';
import type { PetStore } from '../../src/pets/store.js';
import { callerOf, createTestDatabase, startService } from '../support/harness.js';
import {
  announcement,
  choose,
  expectFocusOn,
  expectNoFaults,
  FILTER,
  fill,
  findBrowser,
  names,
  numbers,
  openStorefront,
  REFUSALS,
  type Storefront,
  stock,
  type VisitOptions,
} from '../support/storefront.js';

const executable = findBrowser();

describe.skipIf(executable === undefined)('the storefront, when it is told no', { timeout: 60_000 }, () => {
  let storefront: Storefront;
  beforeAll(async () => {
    storefront = await openStorefront(executable);
    // Goes on as always, and can be set.
    await storefront.browser.context.clock.install();
  });
  afterAll(() => storefront?.close());

  const visit = (options?: VisitOptions) => storefront.visit(options);
  const inspect = (page: Page, name: string) => storefront.inspect(page, name);

  /**
   * A service whose clock goes on together with the page's when told to, and a key with three requests a minute, of
   * which some are spent.
   */
  async function visitSpent(spent: number, pets: number) {
    let skippedMs = 0;
    const clock = () => Date.now() + skippedMs;
    const limiter = createLimiter({ redisUrls: [], log: pino({ level: 'silent' }), clock });
    const service = await startService({ limiter });
    onTestFinished(() => service.close());
    const limits = { plan: 'enterprise', perMinute: 3, perDay: 1_000 } as const;
    const { key } = await service.keys.create({ name: 'limited', expiresAt: null, ...limits });
    await stock(service, pets);
    const call = callerOf({ url: service.url, key });
    for (let count = 0; count < spent; count += 1) await call('/v1/pets');
    const visited = await visit({ service, key });
    const skip = async (seconds: number) => {
      skippedMs += seconds * 1_000;
      await visited.page.clock.fastForward(seconds * 1_000);
    };
    return { ...visited, skip };
  }

  test('it waits out a refusal, counting down, and goes on by itself', async () => {
    const { skip, ...visited } = await visitSpent(3, 3);
    const { page } = visited;
    await page.getByRole('region', { name: 'A short pause' }).waitFor();
    await page
      .getByRole('timer')
      .getByText(/^(1:00|0:5\d)$/)
      .waitFor();
    expect(await page.getByRole('meter').getAttribute('aria-valuetext')).toBe('0 of 3 left');
    await announcement(page, /A short pause.* seconds/).waitFor({ state: 'attached' });
    expect(await page.getByRole('button', { name: 'Try now' }).count()).toBe(0);
    await inspect(page, 'refused');
    await skip(30);
    await page
      .getByRole('timer')
      .getByText(/^0:[0-2]\d$/)
      .waitFor();
    await skip(31);
    await names(page).nth(2).waitFor();
    expect(await page.getByRole('region', { name: 'A short pause' }).count()).toBe(0);
    expectNoFaults(visited, REFUSALS);
  });

  test('it keeps what is shown when a further page is refused, and goes on with it', async () => {
    const { skip, page, ...watched } = await visitSpent(2, 30);
    await names(page).nth(19).waitFor();
    await page.keyboard.press('End');
    await page.getByRole('region', { name: 'A short pause' }).waitFor();
    expect(await names(page).count()).toBe(20);
    await page.getByRole('region', { name: 'A short pause' }).scrollIntoViewIfNeeded();
    await inspect(page, 'refused-further');
    await skip(61);
    await page.getByText('That is everyone: 30 animals.').waitFor();
    expect(await numbers(page)).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
    expectNoFaults({ page, ...watched }, REFUSALS);
  });

  test('it takes a refused animal back out, keeps the form, and saves it after the wait', async () => {
    const { skip, page, ...watched } = await visitSpent(2, 3);
    await names(page).nth(2).waitFor();
    await fill(page, { name: 'Miso', category: 'Cats', status: 'Available' });
    await page.getByRole('button', { name: 'Save animal' }).click();
    await page.locator('.form-notice').getByText('Not saved. A short pause.').waitFor();
    expect(await numbers(page)).toEqual([1, 2, 3]);
    expect(await page.getByLabel('Name').inputValue()).toBe('Miso');
    const button = page.getByRole('button', { name: /^Save again in/ });
    expect(await button.getAttribute('aria-disabled')).toBe('true');
    await inspect(page, 'refused-save');
    await skip(61);
    await page.getByRole('button', { name: 'Save animal' }).click();
    await page.getByText('Just added').waitFor();
    expect(await numbers(page)).toEqual([4, 1, 2, 3]);
    expectNoFaults({ page, ...watched }, REFUSALS);
  });

  test('it waits out a ban and goes on by itself', async () => {
    const { skip, page, ...watched } = await visitSpent(6, 3);
    await page.getByRole('region', { name: 'This key is resting' }).waitFor();
    await page
      .getByRole('timer')
      .getByText(/^(5:00|4:5\d)$/)
      .waitFor();
    await inspect(page, 'banned');
    await skip(301);
    await names(page).nth(2).waitFor();
    expectNoFaults({ page, ...watched }, REFUSALS);
  });

  test('when the service has a fault, it shows its words and tries again on request', async () => {
    const sound = await startService();
    onTestFinished(() => sound.close());
    let isBroken = true;
    const list: PetStore['list'] = (page) =>
      isBroken ? Promise.reject(new Error('broken')) : sound.pets.list(page);
    const faulty = await startService({
      dependencies: {
        stores: { pets: { ...sound.pets, list }, orders: createOrderStore(sound.database) },
        now: Date.now,
      },
    });
    onTestFinished(() => faulty.close());
    await stock(sound, 3);
    const visited = await visit({ service: faulty });
    const { page } = visited;
    await page.getByRole('region', { name: 'That did not work' }).waitFor();
    await page
      .getByText(/^Something went wrong on our side.* It is [0-9a-f-]{36}\.$/)
      .first()
      .waitFor();
    await inspect(page, 'fault');
    isBroken = false;
    await page.getByRole('button', { name: 'Try now' }).click();
    await names(page).nth(2).waitFor();
    await expectFocusOn(page.getByRole('heading', { name: 'Catalogue' }));
    expectNoFaults(visited, REFUSALS);
  });

  test('when the service is away, it says so, tries again by itself, and goes on when it is back', async () => {
    const databaseUrl = await createTestDatabase();
    const before = await startService({ databaseUrl });
    const visited = await visit({ service: before, pets: 12 });
    const { page } = visited;
    await names(page).nth(11).waitFor();
    await before.close();
    await choose(page, FILTER, 'Sold');
    await page.getByRole('region', { name: 'The store cannot be reached' }).waitFor();
    await inspect(page, 'away');
    const again = await startService({ databaseUrl, port: before.port });
    onTestFinished(() => again.close());
    await page.getByText('That is everyone: 4 animals.').waitFor();
    expect(await page.getByRole('region', { name: 'The store cannot be reached' }).count()).toBe(0);
    expectNoFaults(visited, REFUSALS);
  });
});

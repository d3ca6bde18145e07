import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCaller } from '@animal-store/platform/testing';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { create, list, resources } from '../../../test/support/operations-under-test.js';
import {
  type Browser,
  findBrowser,
  findViolations,
  launchBrowser,
  openPage,
  type WatchedPage,
} from '../../platform/test/support/browser.js';
import { deprecated } from '../../platform/test/support/deprecated.js';
import { startService, type TestService } from '../../platform/test/support/test-service.js';

const DAY_MS = 86_400_000;
/** Scalar takes its time on a busy machine. */
const PAGE_TIMEOUT_MS = 300_000;
const NEW_KEY = { name: 'shop', expiresAt: null, plan: 'free', perMinute: null, perDay: null } as const;
const DENIED_ON_ONE_DAY = 12_345;

const executable = findBrowser();

describe.skipIf(executable === undefined)('the page of a key', { timeout: PAGE_TIMEOUT_MS }, () => {
  let service: TestService;
  let browser: Browser;
  let screenshots: string;
  /** Called on most of the last days, a deprecated operation as well; banned, and about to expire */
  let used: string;
  let unused: string;

  beforeAll(async () => {
    service = await startService({ resources: [...resources, deprecated.resource] });
    browser = await launchBrowser(executable ?? '');
    screenshots = await mkdtemp(join(tmpdir(), 'animal-store-key-'));
    const expiresAt = new Date(Date.now() + 12.5 * DAY_MS);
    const issued = await service.keys.create({ ...NEW_KEY, expiresAt });
    used = issued.key;
    unused = (await service.keys.create(NEW_KEY)).key;
    const { pool } = service.database;
    await pool.query(
      `INSERT INTO api_key_usage (api_key_id, day, operation, requests, denied)
       SELECT $1, (now() AT TIME ZONE 'UTC')::date - age, operation,
         2000 + 900 * sin(age) + 700 * cos(age * length(operation)),
         CASE WHEN age = 2 AND operation = $2 THEN ${DENIED_ON_ONE_DAY} WHEN age % 7 = 0 THEN 300 ELSE 0 END
       FROM generate_series(0, 29) AS age, unnest($3::text[]) AS operation WHERE age NOT IN (8, 9)`,
      [issued.apiKey.id, list.name, [list.name, create.name, deprecated.name, 'getKey']],
    );
    // After the insert: the service adds its counts to these rows whenever it writes them.
    const call = createCaller({ url: service.url, key: used });
    for (let n = 0; n < 40; n += 1) await call(list.path);
    await pool.query('UPDATE api_keys SET banned_until = $2 WHERE id = $1', [
      issued.apiKey.id,
      new Date(Date.now() + 3_600_000),
    ]);
    // The service remembers the row of a key for some seconds.
    const isBanned = async () => expect((await call('/v1/key')).body.bannedUntil).not.toBeNull();
    await vi.waitFor(isBanned, { timeout: PAGE_TIMEOUT_MS, interval: 500 });
  }, PAGE_TIMEOUT_MS);
  afterEach(async () => {
    for (const page of browser.context.pages()) await page.close();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  async function open(path = '/docs/key'): Promise<WatchedPage> {
    const watched = await openPage(browser.context);
    await watched.page.goto(service.url + path);
    return watched;
  }

  async function enter(page: Page, key: string): Promise<void> {
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Show' }).click();
  }

  const state = (page: Page) => page.getByRole('status');
  const readRows = (page: Page, title: RegExp) =>
    page
      .getByRole('table')
      .filter({ hasText: title })
      .getByRole('row')
      .evaluateAll((rows) =>
        rows.map((row) => [...row.children].map(({ textContent }) => textContent).join(' | ')),
      );
  const fulfill = (page: Page, response: object) =>
    page.route('**/v1/key', (route) => route.fulfill(response));

  test.each([
    [1440, 'light'],
    [1440, 'dark'],
    [390, 'light'],
    [390, 'dark'],
  ] as const)('axe has no finding and nothing overflows at %i pixels, %s', async (width, colorScheme) => {
    for (const [name, key, shown] of [
      ['none', '', ''],
      ['used', used, 'As of'],
      ['unused', unused, 'As of'],
      ['wrong', 'as_test_nonsense', 'does not accept'],
    ] as const) {
      const { page, origins } = await open();
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      if (key !== '') await enter(page, key);
      await state(page).filter({ hasText: shown }).waitFor({ state: 'attached' });
      const path = join(screenshots, `${name}-${width}-${colorScheme}.png`);
      await page.screenshot({ path, fullPage: true, animations: 'disabled' });
      console.log(`Screenshot: ${path}`);
      for (const fold of await page.locator('summary').all()) await fold.click();
      expect([name, await findViolations(page)]).toEqual([name, []]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      expect([...origins]).toEqual([service.url]);
      await page.close();
    }
  });

  test('works in a browser that blocks the storage along with cookies: the key ends with the page', async () => {
    const { page, errors } = await openPage(browser.context);
    await page.addInitScript(() => {
      for (const name of ['localStorage', 'sessionStorage'])
        Object.defineProperty(window, name, {
          get() {
            throw new DOMException('Access is denied for this document.', 'SecurityError');
          },
        });
    });
    await page.goto(`${service.url}/docs/key`);
    await enter(page, used);
    await state(page)
      .getByText(/^As of/)
      .waitFor();
    expect(await page.getByRole('meter').count()).toBeGreaterThan(0);
    expect(errors).toEqual([]);
    // Scalar needs the storage, so the page stays as it was before.
    await page.goto(`${service.url}/docs`);
    await page.getByRole('heading', { name: 'Introduction', exact: true }).waitFor();
  });

  test('shows what getKey says: limits, days and operations as numbers, and what to do something about', async () => {
    const { page, errors } = await open();
    const answered = page.waitForResponse('**/v1/key');
    await enter(page, used);
    // The next answer may count this call.
    const body = await (await answered).json();
    await state(page)
      .getByText(/^As of/)
      .waitFor();
    const meters = await page
      .getByRole('meter')
      .evaluateAll((all) =>
        all.map(({ ariaLabel, ariaValueMax, ariaValueText }) => [ariaLabel, ariaValueMax, ariaValueText]),
      );
    const format = (count: number) => count.toLocaleString('en');
    expect(meters).toEqual(
      body.limits.map(({ window, limit, remaining }: Record<string, number>) => [
        ...[
          `Left this ${window}`,
          String(limit),
          `${format(Number(remaining))} of ${format(Number(limit))} left`,
        ],
      ]),
    );
    const text = await page.getByRole('main').innerText();
    for (const fact of [
      body.name,
      `${body.hint}…`,
      body.plan,
      body.scopes.join(', '),
      'Banned until',
      'in 12 days',
    ])
      expect(text).toContain(fact);
    expect(text).not.toContain(used);

    await page.getByText('Day by day').click();
    const days = await readRows(page, /^Day/);
    expect(days).toHaveLength(31);
    const sum = (of: string, day: string) =>
      body.usage
        .filter((row: { day: string }) => row.day === day)
        .reduce((total: number, row: Record<string, number>) => total + Number(row[of]), 0);
    for (const { day } of body.usage)
      expect(days).toContain(`${day} | ${format(sum('requests', day))} | ${format(sum('denied', day))}`);
    expect((await readRows(page, /^Operation/)).map((row) => row.split(' | ')[0]).toSorted()).toEqual(
      ['Operation', list.name, create.name, `${deprecated.name} (deprecated)`, 'getKey'].toSorted(),
    );
    expect(await page.locator('.bars > div').count()).toBe(30);
    expect(errors).toEqual([]);
  });

  test('times are those of the reader, with the time in UTC on hover, and other plans are beside the use', async () => {
    const { page } = await open();
    await enter(page, used);
    const time = page.locator('dd time').first();
    await time.waitFor();
    const [title, moment] = [await time.getAttribute('title'), await time.getAttribute('datetime')];
    expect(title).toBe(`${moment?.slice(0, 19).replace('T', ' ')} UTC`);
    await page.getByRole('heading', { name: 'Plans' }).waitFor();
    const plans = await readRows(page, /^Plan/);
    expect(plans.map((row) => row.split(' | ')[0])).toEqual([
      ...['Plan', 'free (yours)', 'pro', 'business', 'enterprise'],
    ]);
    await page.getByText(/^Refused [\d,]+ times in 30 days\..*not about minutes\.$/).waitFor();
  });

  test('a key is revoked behind a step that asks for its first characters, and only with those', async () => {
    const { key, apiKey } = await service.keys.create({ ...NEW_KEY, name: 'leaked' });
    const { page, errors } = await open();
    await enter(page, key);
    await page.getByText('Revoke this key').click();
    const field = page.getByLabel(/^To revoke it for good/);
    await field.fill('as_test_none');
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('Nothing was revoked.').waitFor();
    const call = createCaller({ url: service.url, key });
    expect((await call('/v1/key')).status).toBe(200);
    await field.fill(apiKey.hint);
    await page.getByRole('button', { name: 'Revoke' }).click();
    await state(page).getByText('The key is revoked.').waitFor();
    expect(await page.getByLabel('API key').evaluate((field) => field === document.activeElement)).toBe(true);
    expect((await call('/v1/key')).status).toBe(401);
    expect(errors).toEqual([]);
  });

  test('every link, those of notices and operations too, leads to something that is there', async () => {
    const { page } = await open();
    await enter(page, used);
    await page.getByRole('table').first().waitFor({ state: 'attached' });
    const { text } = await fetch(`${service.url}/docs`).then(async (response) => ({
      text: await response.text(),
    }));
    const links = await page.locator('a').evaluateAll((all) => all.map((link) => Reflect.get(link, 'href')));
    expect(links.length).toBeGreaterThan(4);
    for (const link of links as string[]) {
      const { pathname, hash } = new URL(link);
      expect(pathname).toBe('/docs');
      if (hash !== '') expect(text).toContain(` id="${hash.slice(1)}"`);
    }
  });

  test('the key is that of the reference page, stays in its tab, and is in no address', async () => {
    const { page } = await open('/docs#description/introduction');
    await page.locator('.text').waitFor({ state: 'detached', timeout: PAGE_TIMEOUT_MS });
    await page.getByPlaceholder('Token').filter({ visible: true }).first().fill(unused);
    const addresses: string[] = [];
    page.on('request', (request) => addresses.push(request.url()));
    await page.getByRole('link', { name: 'Your key', exact: true }).first().click();
    await state(page)
      .getByText(/^As of/)
      .waitFor();
    expect(await page.getByLabel('API key').inputValue()).toBe(unused);
    await page.reload();
    await state(page)
      .getByText(/^As of/)
      .waitFor();
    expect(addresses.concat(page.url()).join()).not.toContain(unused);
    expect(await page.evaluate(() => JSON.stringify([localStorage, document.cookie]))).not.toContain(unused);
    const { page: other } = await open();
    expect(await other.getByLabel('API key').inputValue()).toBe('');
  });

  test('what is wrong is said in words, and takes the figures of the key before away', async () => {
    const { page } = await open();
    await enter(page, unused);
    await page.getByRole('meter').first().waitFor();
    await enter(page, 'as_test_nonsense');
    await state(page).getByText('does not accept this key').waitFor();
    expect(await page.getByRole('meter').count()).toBe(0);
    const sent: string[] = [];
    page.on('request', (request) => sent.push(request.url()));
    await enter(page, 'as_test_…');
    await state(page).getByText('This is not a key').waitFor();
    expect(sent).toEqual([]);
    await fulfill(page, { status: 429, headers: { 'retry-after': '17' } });
    await enter(page, unused);
    await state(page).getByText('Try again in 17 s.').waitFor();
    await page.unroute('**/v1/key');
    await page.route('**/v1/key', (route) => route.abort());
    await enter(page, unused);
    await state(page).getByText('cannot be reached').waitFor();
  });

  test('a response that a later request has overtaken is not shown', async () => {
    const { page } = await open();
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    await page.route('**/v1/key', async (route) => {
      if (route.request().headers().authorization === `Bearer ${used}`) await released;
      await route.continue();
    });
    await enter(page, used);
    await enter(page, unused);
    await state(page)
      .getByText(/^As of/)
      .waitFor();
    const late = page.waitForResponse('**/v1/key');
    release();
    await (await late).finished();
    expect(await page.getByText('Banned until').count()).toBe(0);
  });

  test('without JavaScript it says so, and how to ask by curl', async () => {
    const context = await browser.context.browser()?.newContext({ javaScriptEnabled: false });
    const page = (await context?.newPage()) ?? expect.unreachable();
    await page.goto(`${service.url}/docs/key`);
    const text = await page.getByRole('main').innerText();
    expect(text).toContain('With JavaScript, this page shows');
    expect(text).toContain('/v1/key');
    expect(await page.getByRole('button').count()).toBe(0);
    await context?.close();
  });

  test('the first screen of the reference, its guide, its operation and its search lead here', async () => {
    const { page } = await open('/docs');
    const link = page.getByRole('link', { name: 'Your key', exact: true });
    await page.locator('.text').waitFor({ state: 'detached', timeout: PAGE_TIMEOUT_MS });
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 });
      await expect
        .poll(async () => (await link.first().boundingBox())?.y, { message: `${width} pixels wide` })
        .toBeLessThan(900);
    }
    await page.setViewportSize({ width: 1440, height: 900 });
    await expect.poll(() => link.count()).toBeGreaterThan(1);
    await page.getByRole('link', { name: '/docs/key', exact: true }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('searchbox').fill('dashboard');
    await page
      .getByRole('dialog', { name: 'Search' })
      .getByRole('link', { name: /^Your key/ })
      .click();
    await page.waitForURL(`${service.url}/docs/key`);
  });
});

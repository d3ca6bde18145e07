import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import { pino } from 'pino';
import type { Page } from 'playwright-core';
import { type InlineConfig, type PreviewServer, preview, build as viteBuild } from 'vite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { storefrontConfig } from '../examples/storefront/vite.config.js';
import { createLimiter } from '../src/limits/limiter.js';
import { createOrderStore } from '../src/orders/store.js';
import type { PetStore } from '../src/pets/store.js';
import { type Browser, findChromium, launchBrowser, openPage, type WatchedPage } from './browser.js';
import { makeFolder } from './folder.js';
import { callerOf, createTestDatabase, type Service, startService } from './harness.js';
import { runNode } from './process.js';

const executable = findChromium();
if (executable === undefined) {
  const message = 'No Chromium: set CHROMIUM or install one. The storefront is not tested.';
  if (process.env.CI === 'true') throw new Error(message);
  console.log(message);
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const WIDTHS = [390, 1280] as const;
/** States of the form, which narrow pages show on request */
const WITH_FORM = ['saving', 'added', 'field-faults', 'refused-save'];
const SCHEMES = ['light', 'dark'] as const;
/** What Chromium itself writes of an answer that says no, or of none */
const REFUSALS = /^console: Failed to load resource: /;

describe.skipIf(executable === undefined)('the storefront', () => {
  let browser: Browser;
  let outDir: string;
  let screenshots: string;

  beforeAll(async () => {
    outDir = await mkdtemp(join(tmpdir(), 'animal-store-storefront-'));
    screenshots = await mkdtemp(join(tmpdir(), 'animal-store-storefront-pictures-'));
    await viteBuild(configFor('http://127.0.0.1:9'));
    browser = await launchBrowser(executable ?? '');
    console.log(`Screenshots: ${screenshots}`);
  });
  afterAll(async () => {
    await browser?.close();
    await rm(outDir, { recursive: true, force: true });
  });

  function configFor(serviceUrl: string): InlineConfig {
    const config = storefrontConfig(serviceUrl);
    return {
      ...config,
      configFile: false,
      logLevel: 'silent',
      build: { outDir, emptyOutDir: true },
      preview: { ...config.preview, port: 0 },
    };
  }

  /** The built page in front of a service; returns its address. */
  async function serve(serviceUrl: string): Promise<string> {
    const server: PreviewServer = await preview(configFor(serviceUrl));
    onTestFinished(() => server.close());
    return server.resolvedUrls?.local[0] ?? '';
  }

  interface Visit extends WatchedPage {
    readonly service: Service;
    readonly url: string;
  }

  interface VisitOptions {
    readonly service?: Service;
    /** null: none; left out: the service's */
    readonly key?: string | null;
    readonly pets?: number;
    readonly browser?: Browser;
    /** Done to the page before it opens */
    readonly prepare?: (page: Page) => Promise<unknown>;
  }

  /** The storefront opened as by the address that `npm run storefront` prints. */
  async function visit({ service: given, key, pets = 0, prepare, ...options }: VisitOptions = {}) {
    const service = given ?? (await startService());
    if (given === undefined) onTestFinished(() => service.close());
    if (pets > 0) await stock(service, pets);
    const url = await serve(service.url);
    const watched = await openPage((options.browser ?? browser).context);
    onTestFinished(() => watched.page.close());
    await prepare?.(watched.page);
    await watched.page.goto(key === null ? url : `${url}#key=${key ?? service.key}`);
    return { ...watched, service, url } satisfies Visit;
  }

  function expectNoFaults({ origins, faults, url }: Visit, expected = /^$/): void {
    expect(faults.filter((fault) => !expected.test(fault))).toEqual([]);
    expect([...origins]).toEqual([new URL(url).origin]);
  }

  /** Pictures of a state at each width in both schemes, and what axe has to say of them. */
  async function inspect(page: Page, name: string): Promise<void> {
    const toggle = page.getByRole('button', { name: 'Add an animal' });
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
      if (WITH_FORM.includes(name) && (await toggle.isVisible())) await toggle.click();
      for (const colorScheme of SCHEMES) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        const path = join(screenshots, `${name}-${width}-${colorScheme}.png`);
        await page.screenshot({ path, animations: 'disabled' });
        expect([name, width, colorScheme, await findViolations(page)]).toEqual([
          name,
          width,
          colorScheme,
          [],
        ]);
      }
    }
    for (const width of [320, 640, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect([name, width, overflow <= 0]).toEqual([name, width, true]);
    }
  }

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
      await field.waitFor();
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
      const files = await readdir(outDir, { recursive: true, withFileTypes: true });
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
      await expect.poll(() => faults).toContainEqual(expect.stringContaining('policy violated: connect-src'));
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
      await service.pets.create({ name: 'Ada', categoryId: 1, status: 'sold' }, undefined, Date.now());
      await choose(page, FILTER, 'Pending');
      await page.getByText('No animal is pending').waitFor();
      await inspect(page, 'empty-filter');
      await page.getByRole('button', { name: 'Show all animals' }).click();
      await page.getByText('Nobody lives here yet').waitFor();
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
        await service.pets.create(
          { name, categoryId: index + 1, status: 'available' },
          undefined,
          Date.now(),
        );
      }
      await service.pets.create({ name: 'Nobody', categoryId: -9, status: 'sold' }, undefined, Date.now());
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
      await expect.poll(() => page.getByText('Give it a name.').count()).toBe(0);
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
      await expectFocusedText(page, 'Skip to the catalogue');
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
    const { page, origins, faults } = await openPage(browser.context);
    onTestFinished(() => page.close());
    await page.goto(address);
    await page.getByText('Bella').waitFor();
    expect([page.url(), faults]).toEqual([address.replace(/#.*/, ''), []]);
    expect([...origins].map((origin) => origin.replace(/^ws/, 'http'))).toEqual([new URL(address).origin]);
  });

  describe('when the service says no', () => {
    /** A browser of its own, because its clock is set */
    let timed: Browser;
    beforeAll(async () => {
      timed = await launchBrowser(executable ?? '');
      await timed.context.clock.install();
    });
    afterAll(() => timed?.close());

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
      const visited = await visit({ service, key, browser: timed });
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
        .getByText(/^0:[12]\d$/)
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
  });

  test('when the service has a fault, it shows its words and tries again on request', async () => {
    const sound = await startService();
    onTestFinished(() => sound.close());
    let isBroken = true;
    const list: PetStore['list'] = (page) =>
      isBroken ? Promise.reject(new Error('broken')) : sound.pets.list(page);
    const faulty = await startService({
      service: { pets: { ...sound.pets, list }, orders: createOrderStore(sound.database), now: Date.now },
    });
    onTestFinished(() => faulty.close());
    await stock(sound, 3);
    const visited = await visit({ service: faulty });
    const { page } = visited;
    await page.getByRole('region', { name: 'That did not work' }).waitFor();
    await page
      .getByText(/^Something went wrong on our side/)
      .first()
      .waitFor();
    await inspect(page, 'fault');
    isBroken = false;
    await page.getByRole('button', { name: 'Try now' }).click();
    await names(page).nth(2).waitFor();
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

/** Animals of all categories and statuses in turn. */
async function stock({ database }: Service, count: number): Promise<void> {
  await database.pool.query(
    `INSERT INTO pets (name, category_id, status)
     SELECT 'Animal ' || n || ', of the test', 1 + n % 6, (ARRAY['available', 'pending', 'sold'])[1 + n % 3]::pet_status
     FROM generate_series(1, $1) AS n`,
    [count],
  );
}

/** Holds requests back until it is opened. */
function createGate() {
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

async function findViolations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<AxeResults>("axe.run({ resultTypes: ['violations'] })");
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
  );
}

function names(page: Page) {
  return page.getByRole('heading', { level: 3 });
}

function badges(page: Page): Promise<string[]> {
  return page.locator('.badge').allTextContents();
}

/** The ids of the animals as they are shown, in their order. */
async function numbers(page: Page): Promise<number[]> {
  const texts = await page.locator('.card-number').allTextContents();
  return texts.map((text) => Number(text.replace('No. ', '')));
}

async function fill(page: Page, { name, category, status }: Record<'name' | 'category' | 'status', string>) {
  await page.getByLabel('Name').fill(name);
  const isNumber = Number.isFinite(Number(category));
  await choose(page, 'Category', isNumber ? 'Another category' : category);
  if (isNumber) await page.getByLabel('Number of the category').fill(category);
  await choose(page, 'Status', status);
}

const FILTER = 'Show animals by status';

async function choose(page: Page, group: string, choice: string): Promise<void> {
  await page.getByRole('group', { name: group, exact: true }).getByLabel(choice, { exact: true }).check();
}

/** What is said to those who cannot see it */
function announcement(page: Page, text: string | RegExp) {
  return page.getByRole('status').getByText(text);
}

/** The field is marked as invalid, and what describes it says why. */
async function expectFault(page: Page, label: string, fault: string | RegExp): Promise<void> {
  const field = page.getByLabel(label, { exact: true });
  await page.locator('[aria-invalid=true]').first().waitFor();
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  const ids = (await field.getAttribute('aria-describedby'))?.split(' ') ?? [];
  const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).textContent()));
  expect(texts).toContainEqual(typeof fault === 'string' ? fault : expect.stringMatching(fault));
}

async function expectFocus(page: Page, label: string): Promise<void> {
  const field = page.getByLabel(label, { exact: true });
  await expect.poll(() => field.evaluate((element) => element === document.activeElement)).toBe(true);
}

async function expectFocusedText(page: Page, text: string): Promise<void> {
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe(text);
}

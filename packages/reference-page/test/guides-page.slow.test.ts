import { execFile } from 'node:child_process';
import { mkdtemp, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { hasProgram } from '@animal-store/limits/testing';
import { createTemporaryFolder, until } from '@animal-store/platform/testing';
import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { listGuides, readCodeBlocks } from '../../../test/guides/code-blocks.js';
import { REUSE_EXAMPLES } from '../../../test/support/operations-under-test.js';
import {
  type Browser,
  findBrowser,
  findViolations,
  launchBrowser,
  openPage,
} from '../../platform/test/support/browser.js';
import { startService, type TestService } from '../../platform/test/support/test-service.js';

const CONTACT_URL = 'https://help.pets.example/';
/** On a busy machine, Scalar takes its time to render the guides. */
const PAGE_TIMEOUT_MS = 300_000;
/** How to run what a tab shows: a program, and the name of the file */
const PROGRAMS: Readonly<Record<string, readonly [string, string]>> = {
  curl: ['bash', 'shown.sh'],
  JavaScript: [process.execPath, 'shown.mjs'],
  Python: ['python3', 'shown.py'],
  Java: ['java', 'FirstCall.java'],
  Go: ['go', 'shown.go'],
};

/** The typed client comes first. Its samples are JavaScript, too. */
const SAMPLE_PROGRAMS: typeof PROGRAMS = { TypeScript: [process.execPath, 'shown.mjs'], ...PROGRAMS };
/** JSON, an object as Node.js prints it, or a status before it */
const OUTPUTS: Readonly<Record<string, RegExp>> = { curl: /^[[{](?!"code")/, TypeScript: /^[[{]/ };
/** The same where the hint of the sample is not that of the key: the body of a 400, or an error of the client */
const REFUSALS: Readonly<Record<string, RegExp>> = {
  curl: /^\{"code":"invalid_request"/,
  TypeScript: /invalid_request/,
  JavaScript: /^400\s/,
  Python: /HTTP Error 400/,
};
const SAMPLE_LANGUAGES = ['TypeScript', 'curl', 'JavaScript', 'Python'];

const executable = findBrowser();

describe.skipIf(executable === undefined)(
  'the guides on the reference page',
  { timeout: PAGE_TIMEOUT_MS },
  () => {
    let service: TestService;
    let browser: Browser;
    let screenshots: string;

    beforeAll(async () => {
      service = await startService();
      await service.items.create({ name: 'Bella', categoryId: 1 });
      browser = await launchBrowser(executable ?? '');
      await browser.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: service.url });
      screenshots = await mkdtemp(join(tmpdir(), 'animal-store-guides-'));
    }, PAGE_TIMEOUT_MS);
    // No test sees the language or the key that another one chose.
    afterEach(async () => {
      for (const page of browser.context.pages()) {
        if (page.url().startsWith(service.url)) await page.evaluate(() => localStorage.clear());
        await page.close();
      }
    });
    afterAll(async () => {
      await browser?.close();
      await service?.close();
    });

    async function open(hash = ''): Promise<Page> {
      const { page } = await openPage(browser.context);
      await page.emulateMedia({ reducedMotion: 'reduce' });
      await page.goto(`${service.url}/docs${hash}`);
      await untilShown(page);
      return page;
    }

    async function untilShown(page: Page): Promise<void> {
      await page.locator('.text').waitFor({ state: 'detached', timeout: PAGE_TIMEOUT_MS });
      await page.getByRole('heading', { name: 'Introduction', exact: true }).waitFor();
      await page.locator('.copy-block').first().waitFor({ state: 'attached' });
    }

    async function takeScreenshot(page: Page, name: string): Promise<void> {
      const path = join(screenshots, `${name}.png`);
      await page.screenshot({ path, animations: 'disabled' });
      console.log(`Screenshot: ${path}`);
    }

    const keyField = (page: Page): Locator =>
      page.getByPlaceholder('Token').filter({ visible: true }).first();
    /** The tabs in the guide to a first call, which has all languages. */
    const firstTabs = (page: Page): Locator => page.getByRole('tablist', { name: 'Language' }).first();
    const readShown = (page: Page): Promise<string[]> =>
      page
        .locator('.markdown pre > code')
        .evaluateAll((blocks) => blocks.map((block) => block.textContent ?? ''));

    /** Runs code as somebody who pastes it into a new terminal, and resolves with what it prints. */
    async function runShown(language: string, code: string): Promise<string> {
      const [program, file] = SAMPLE_PROGRAMS[language] ?? expect.unreachable(language);
      const folder = await createTemporaryFolder();
      // What installing the client would add
      await symlink(resolve('node_modules'), join(folder, 'node_modules'));
      await writeFile(join(folder, file), code);
      const { ANIMAL_STORE_URL: _url, ANIMAL_STORE_KEY: _key, ...env } = process.env;
      const args = [...(program === 'go' ? ['run'] : []), join(folder, file)];
      const { stdout } = await promisify(execFile)(program, args, { env, cwd: folder, timeout: 60_000 });
      return stdout;
    }

    test('no table and no code block is cut at 1280, 1440 and 1920 pixels, in any language', async () => {
      const page = await open('#description/every-code');
      const languages = await firstTabs(page).getByRole('tab').allInnerTexts();
      expect(languages).toEqual(Object.keys(PROGRAMS));
      for (const [width, height] of [
        [1280, 720],
        [1440, 900],
        [1920, 1080],
      ] as const) {
        await page.setViewportSize({ width, height });
        for (const language of languages) {
          await firstTabs(page).getByRole('tab', { name: language, exact: true }).click();
          const cut = await page
            .locator('.markdown :is(pre > code, table)')
            .evaluateAll((elements) =>
              elements
                .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
                .map(({ textContent }) => textContent?.slice(0, 80)),
            );
          expect([width, language, cut]).toEqual([width, language, []]);
        }
        await takeScreenshot(page, `every-code-${width}`);
      }
    });

    test('the field for the key is above the introduction at every width, and what was typed goes into the code only if it looks like a key', async () => {
      const page = await open();
      const introduction = page.getByRole('heading', { name: 'Introduction', exact: true });
      for (const width of [390, 820, 1280, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        await keyField(page).waitFor();
        const [field, heading] = await Promise.all([
          keyField(page).boundingBox(),
          introduction.boundingBox(),
        ]);
        expect([width, (field?.y ?? Number.NaN) < (heading?.y ?? Number.NaN)]).toEqual([width, true]);
        await takeScreenshot(page, `introduction-${width}`);
      }
      await keyField(page).fill(service.key);
      await expect.poll(async () => (await readShown(page)).join()).toContain(service.key);
      await keyField(page).fill(`as_test_'; rm -rf ~; '`);
      await expect.poll(async () => (await readShown(page)).join()).not.toContain(service.key);
      expect((await readShown(page)).join()).not.toContain('rm -rf');
    });

    test('every block has a button that copies what it shows: this address, and the key that was entered', async () => {
      const page = await open();
      const fences = readCodeBlocks().filter(({ place }) => place.startsWith('docs/guides/'));
      const before = await readShown(page);
      expect(before.length).toBeGreaterThan(fences.length);
      expect(await page.locator('.markdown pre > .copy-block').count()).toBe(before.length);
      expect(before.filter((code) => /store\.example\.org|ANIMAL_STORE_URL(?!=)/.test(code))).toEqual([]);
      expect(before.filter((code) => code.includes(service.url)).length).toBeGreaterThan(20);
      expect(before.some((code) => code.includes('$ANIMAL_STORE_KEY'))).toBe(true);

      await keyField(page).fill(service.key);
      const withKey = before.filter((code) => /ANIMAL_STORE_KEY|Bearer as_test_…/.test(code)).length;
      await expect
        .poll(async () => (await readShown(page)).filter((code) => code.includes(service.key)).length)
        .toBe(withKey);
      const after = await readShown(page);
      expect(after.filter((code) => /ANIMAL_STORE_KEY(?!=)/.test(code))).toEqual([]);
      for (const index of [0, 1, before.length - 1]) {
        await page.locator('.markdown pre > .copy-block').nth(index).click();
        await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(after[index]);
      }
    });

    test('the key survives a reload of its tab, and no other tab gets it', async () => {
      const page = await open('#description/a-first-call');
      await keyField(page).fill(service.key);
      await expect.poll(async () => (await readShown(page)).join()).toContain(service.key);
      await page.reload();
      await untilShown(page);
      await expect.poll(() => keyField(page).inputValue()).toBe(service.key);
      expect((await readShown(page)).join()).toContain(service.key);
      expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(service.key);
      const other = await open();
      expect(await keyField(other).inputValue()).toBe('');
    });

    test('languages are tabs, by mouse and arrow keys, and the choice holds everywhere and after a reload', async () => {
      const page = await open('#description/in-your-language');
      const tab = (name: string) => firstTabs(page).getByRole('tab', { name, exact: true });
      const readSelected = () =>
        page
          .getByRole('tablist', { name: 'Language' })
          .evaluateAll((lists) =>
            lists.map((list) => list.querySelector('[aria-selected=true]')?.textContent),
          );
      expect((await readSelected())[0]).toBe('curl');
      await tab('JavaScript').click();
      await tab('JavaScript').press('ArrowRight');
      expect(await tab('Python').evaluate((element) => element === document.activeElement)).toBe(true);
      const selected = await readSelected();
      expect(selected.length).toBeGreaterThan(4);
      expect(new Set(selected)).toEqual(new Set(['Python']));
      await page.reload();
      await untilShown(page);
      await expect.poll(readSelected).toEqual(selected);
      const panel = page.getByRole('tabpanel', { name: 'Python' }).first();
      expect(await panel.innerText()).toContain('import json');
      await tab('Go').click();
      // Where there is no example in Go, the first is shown.
      const names = await page
        .getByRole('tablist', { name: 'Language' })
        .evaluateAll((lists) =>
          lists.map((list) => Array.from(list.querySelectorAll('[role=tab]'), (each) => each.textContent)),
        );
      expect(await readSelected()).toEqual(names.map((each) => (each.includes('Go') ? 'Go' : each[0])));
      expect(names.some((each) => !each.includes('Go'))).toBe(true);
      await takeScreenshot(page, 'tabs');
    });

    test('the samples of operations start with the language of the tabs, and a choice there holds for the tabs', async () => {
      const page = await open();
      const list = '#tag/pets/GET/pets';
      const card = page.locator('[id$="tag/pets/GET/pets"] .request-card');
      const goTo = (hash: string) => page.evaluate((to) => location.assign(to), hash);
      await goTo(list);
      expect(await card.getByTestId('client-picker').innerText()).toBe('TypeScript');
      await card.getByTestId('client-picker').click();
      await page.getByRole('option', { name: 'Python', exact: true }).click();
      await goTo('#description/in-your-language');
      const selected = firstTabs(page).getByRole('tab', { selected: true });
      await expect.poll(() => selected.innerText()).toBe('Python');
      await page.reload();
      await untilShown(page);
      await goTo(list);
      await expect.poll(() => card.locator('pre > code').textContent()).toContain('import json');
      expect(await card.getByTestId('client-picker').innerText()).toBe('Python');
    });

    test('the first call runs in each language as the page shows it, pasted without any variable', async () => {
      const page = await open();
      await keyField(page).fill(service.key);
      await expect.poll(async () => (await readShown(page)).join()).toContain(service.key);
      const [first] = await readShown(page);
      expect(await runShown('curl', first ?? '')).toContain('Bella');
      for (const [language, [program]] of Object.entries(PROGRAMS)) {
        if (!hasProgram(program === 'java' ? 'javac' : program, '--help')) continue;
        await firstTabs(page).getByRole('tab', { name: language, exact: true }).click();
        const panel = page.getByRole('tabpanel', { name: language, exact: true }).first();
        const code = (await panel.locator('pre > code').first().textContent()) ?? '';
        expect([language, await runShown(language, code)]).toEqual([
          language,
          expect.stringContaining('Bella'),
        ]);
      }
    });

    test('the samples of every operation run as the page shows them, with the port and the key', async () => {
      const page = await open();
      await keyField(page).fill(service.key);
      const response = await fetch(`${service.url}/openapi.json`);
      const { paths } = (await response.json()) as {
        paths: Record<string, Record<string, { tags: string[] }>>;
      };
      const operations = Object.entries(paths).flatMap(([path, item]) =>
        Object.entries(item).map(([method, { tags }]) => ({ path, method, tag: tags[0]?.toLowerCase() })),
      );
      await service.database.pool.query(
        'INSERT INTO pets (name, category_id) SELECT $1, 1 FROM generate_series(1, 9)',
        ['Rex'],
      );
      for (const { path, method, tag } of operations) {
        const address = `tag/${tag}/${method.toUpperCase()}${path}`;
        await page.evaluate((hash) => location.assign(hash), `#${address}`);
        const card = page.locator(`[id$="${address}"] .request-card`);
        for (const language of SAMPLE_LANGUAGES) {
          await card.getByTestId('client-picker').click();
          const options = page.getByRole('option');
          expect(await options.allInnerTexts()).toEqual(SAMPLE_LANGUAGES);
          await options.filter({ hasText: language }).click();
          const code = card.locator('pre > code');
          await expect.poll(() => code.textContent()).toContain(service.key);
          await card.locator('.copy-block').click();
          const copied = await page.evaluate(() => navigator.clipboard.readText());
          // A busy machine may answer with a 503, which says to try again.
          const output = await until(async () => {
            // The sample of an order is sent in each language, and an animal can be ordered once.
            await service.database.pool.query(REUSE_EXAMPLES);
            // Python raises what is no success.
            const text = await runShown(language, copied).catch(({ message }: Error) => message);
            return /\b503\b/.test(text) ? undefined : text;
          }, 60_000);
          // No sample ends the key that was entered: nobody would expect that of pressing a button.
          expect([address, language, output]).toEqual([
            address,
            language,
            expect.stringMatching(
              method === 'delete'
                ? (REFUSALS[language] ?? 'what a refusal prints')
                : (OUTPUTS[language] ?? /^20[01] /),
            ),
          ]);
        }
      }
    });

    test('fine print is folded, and opens and closes by a click and by the keyboard', async () => {
      const page = await open('#description/bans');
      const fold = page.locator('details', { hasText: 'HTTP pipelining' }).first();
      await fold.waitFor({ state: 'attached' });
      const text = fold.getByText('HTTP pipelining');
      expect(await text.isVisible()).toBe(false);
      await fold.locator('summary').click();
      await text.waitFor();
      await takeScreenshot(page, 'folded');
      await fold.locator('summary').press('Enter');
      await expect.poll(() => text.isVisible()).toBe(false);
    });

    test('a search opens by Ctrl+K and by the button, finds words in the guides, and Enter leads to the section', async () => {
      const page = await open();
      const dialog = page.getByRole('dialog', { name: 'Search' });
      await page
        .getByRole('button', { name: /search/i })
        .filter({ visible: true })
        .first()
        .click();
      await dialog.waitFor();
      expect(await page.getByRole('dialog').filter({ visible: true }).count()).toBe(1);
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
      for (const [word, section] of [
        ['429', 'when-the-limit-is-used-up'],
        ['insufficient_scope', 'a-missing-scope'],
        ['Retry-After', 'when-the-limit-is-used-up'],
        ['Sunset', 'how-an-operation-is-removed'],
        ['idempotency', 'the-idempotency-key-header'],
        ['createPet', 'tag/pets/POST/pets'],
      ] as const) {
        await page.keyboard.press('Control+k');
        await page.getByRole('searchbox').fill(word);
        await expect.poll(() => dialog.getByRole('status').innerText()).toMatch(/^Sections found: \d+$/);
        expect((await dialog.locator('mark').first().innerText()).toLowerCase()).toContain(
          word.toLowerCase(),
        );
        if (word === 'Sunset') await takeScreenshot(page, 'search');
        await page.keyboard.press('Enter');
        await dialog.waitFor({ state: 'hidden' });
        const target = page.locator(`[id$="${section}"]`).first();
        await expect.poll(async () => (await target.boundingBox())?.y).toBeLessThan(400);
        expect(await target.evaluate((element) => element.getBoundingClientRect().bottom)).toBeGreaterThan(0);
      }
    });

    test('a search that finds nothing lists the guides, each leads to its beginning, and the arrow keys go through results and back', async () => {
      const page = await open();
      await page.keyboard.press('Control+k');
      await page.getByRole('searchbox').fill('zyzzyva');
      const dialog = page.getByRole('dialog', { name: 'Search' });
      await expect.poll(() => dialog.getByRole('status').innerText()).toBe('Nothing found. The guides are:');
      expect(await dialog.getByRole('link').count()).toBe(1 + listGuides().length);
      await dialog.getByRole('link', { name: 'Rate limits', exact: true }).click();
      await dialog.waitFor({ state: 'hidden' });
      const target = page.locator('[id$="description/rate-limits"]').first();
      await expect.poll(async () => (await target.boundingBox())?.y).toBeLessThan(400);

      await page.keyboard.press('Control+k');
      const field = page.getByRole('searchbox');
      await field.fill('limit');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowDown');
      const links = dialog.getByRole('link');
      const isFocused = (locator: Locator) =>
        locator.evaluate((element) => element === document.activeElement);
      expect(await isFocused(links.nth(1))).toBe(true);
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('ArrowUp');
      expect(await isFocused(field)).toBe(true);
    });

    test('the first stop of the Tab key skips to the content, and whatever has the focus has a ring', async () => {
      const page = await open();
      await page.keyboard.press('Tab');
      const link = page.getByRole('link', { name: 'Skip to the content' });
      expect(
        await link.evaluate((element) => [
          element === document.activeElement,
          getComputedStyle(element).clipPath,
        ]),
      ).toEqual([true, 'none']);
      await page.keyboard.press('Enter');
      expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('MAIN');
      const withoutRing = await page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>('a[href], button, input, [tabindex="0"]')]
          .filter((element) => element.checkVisibility())
          .filter((element) => {
            // Without scrolling, which renders the whole page anew for each. Typed, because TypeScript lacks focusVisible yet.
            element.focus({ focusVisible: true, preventScroll: true } as FocusOptions);
            const { outlineStyle, outlineWidth } = getComputedStyle(element);
            return document.activeElement === element && (outlineStyle !== 'solid' || outlineWidth !== '2px');
          })
          .map(({ outerHTML }) => outerHTML.slice(0, 120)),
      );
      expect(withoutRing).toEqual([]);
      await page.locator('.markdown pre > .copy-block').first().focus();
      await page.keyboard.press('Shift+Tab');
      await page.keyboard.press('Tab');
      await takeScreenshot(page, 'focus');
    });

    test.each(['docs', 'changelog'])(
      '/%s without JavaScript fits a phone, and every link leads somewhere',
      async (path) => {
        const { page } = await openPage(browser.context);
        // The page's scripts do not load; with JavaScript off altogether, the test could not look at it.
        await page.route(/\.js$/, (route) => route.fulfill({ contentType: 'text/javascript', body: '' }));
        await page.setViewportSize({ width: 390, height: 844 });
        await page.goto(`${service.url}/${path}`);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
        const links = await page
          .locator('a')
          .evaluateAll((all) => all.map((link) => Reflect.get(link, 'href')));
        const targets = [...new Set<string>(links)].filter((link) => link.startsWith(service.url));
        expect(targets.length).toBeGreaterThan(3);
        for (const target of targets) {
          const { hash } = new URL(target);
          const response = await page.request.get(target);
          expect([target, response.status()]).toEqual([target, 200]);
          if (hash === '') expect(response.headers()['content-type']).not.toContain('markdown');
          else expect(await response.text()).toContain(` id="${decodeURIComponent(hash.slice(1))}"`);
        }
      },
    );

    test('before Scalar has run, the skip link leads past the contents, and the introduction is where it will stay', async () => {
      const { page } = await openPage(browser.context);
      let release = () => {};
      const released = new Promise<void>((resolve) => (release = resolve));
      await page.route(/scalar-\d/, async (route) => {
        await released;
        await route.continue();
      });
      await page.goto(`${service.url}/docs`, { waitUntil: 'commit' });
      const heading = page.getByRole('heading', { name: 'Introduction', exact: true });
      const before = await heading.boundingBox();
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      expect(await page.evaluate(() => document.activeElement?.id)).toBe('content');
      release();
      await untilShown(page);
      await expect
        .poll(async () => Math.abs(((await heading.boundingBox())?.y ?? 0) - (before?.y ?? 0)), {
          timeout: 10_000,
        })
        .toBeLessThan(8);
    });

    test('before Scalar has run, "Get a key, make a call" is on the first screen, and operations are above the guides', async () => {
      const { page } = await openPage(browser.context);
      await page.route(/scalar-\d/, (route) => route.fulfill({ contentType: 'text/javascript', body: '' }));
      await page.route('**/guides.json', () => {});
      for (const [width, colorScheme] of [
        [1440, 'light'],
        [390, 'dark'],
      ] as const) {
        await page.setViewportSize({ width, height: 844 });
        await page.emulateMedia({ colorScheme });
        await page.goto(`${service.url}/docs`);
        const heading = page.getByRole('heading', { name: 'Get a key, make a call', exact: true });
        expect((await heading.boundingBox())?.y).toBeLessThan(844);
        expect(await findViolations(page)).toEqual([]);
      }
      const links = await page.getByRole('navigation').getByRole('link').allInnerTexts();
      expect(links.indexOf('Add an animal')).toBeLessThan(links.indexOf('Pagination'));
    });

    test('operations have the same address before Scalar has run and after', async () => {
      const { page } = await openPage(browser.context);
      const html = await (
        await page.request.get(`${service.url}/docs`, { headers: { accept: 'text/html' } })
      ).text();
      const ids = [...html.matchAll(/ id="(tag\/[^"]+)"/g)].map(([, id]) => id ?? '');
      expect(ids).toContain('tag/pets/POST/pets');
      await page.goto(`${service.url}/docs#tag/pets/POST/pets`);
      await untilShown(page);
      for (const id of ids.slice(0, 4))
        await page.locator(`[id$="${id}"]`).first().waitFor({ state: 'attached' });
    });

    test('the page says whom to ask, and has the changelog and every guide as a section', async () => {
      const { page } = await openPage(browser.context);
      await page.route('**/openapi.json', async (route) => {
        const document = await (await route.fetch()).json();
        document.info.contact.url = CONTACT_URL;
        await route.fulfill({ json: document });
      });
      await page.goto(`${service.url}/docs#description/help`);
      await untilShown(page);
      expect(
        await page.getByRole('link', { name: 'the operator', exact: true }).first().getAttribute('href'),
      ).toBe(CONTACT_URL);
      const guides = (await (await fetch(`${service.url}/docs/guides.json`)).json()) as {
        sections: { title: string; place: string }[];
      };
      const titles = guides.sections.filter(({ title, place }) => title === place).map(({ title }) => title);
      expect(titles).toHaveLength(listGuides().length);
      for (const title of titles) {
        await page
          .getByRole('heading', { level: 1, name: title, exact: true })
          .waitFor({ state: 'attached' });
      }
    });
  },
);

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import type { Locator, Page } from 'playwright-core';
import { type InlineConfig, preview, build as viteBuild } from 'vite';
import { expect, onTestFinished } from 'vitest';
import { storefrontConfig } from '../../examples/storefront/vite.config.js';
import { type Browser, findChromium, launchBrowser, openPage, type WatchedPage } from './browser.js';
import { startService, type TestService } from './test-service.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SIZES = [
  { width: 390, height: 844 },
  { width: 1280, height: 900 },
] as const;
const SCHEMES = ['light', 'dark'] as const;
/** States of the form, which narrow pages show on request */
const WITH_FORM = ['saving', 'added', 'field-faults', 'refused-save'];
/** What Chromium itself writes of an answer that says no, or of none */
export const REFUSALS = /^console: Failed to load resource: /;

/** How long to look for what is not looked for by the browser's own means */
export const POLL = { timeout: 10_000 };

/** Undefined, and said so, where there is no browser; where that must not be, in CI, it is an error. */
export function findBrowser(): string | undefined {
  const executable = findChromium();
  if (executable !== undefined) return executable;
  const message = 'No Chromium: set CHROMIUM or install one. The storefront is not tested.';
  if (process.env.CI === 'true') throw new Error(message);
  console.log(message);
  return undefined;
}

export interface Visit extends WatchedPage {
  readonly service: TestService;
  readonly url: string;
}

export interface VisitOptions {
  readonly service?: TestService;
  /** null: none; left out: the service's */
  readonly key?: string | null;
  /** So many animals are put into the catalogue first */
  readonly pets?: number;
  /** Done to the page before it opens */
  readonly prepare?: (page: Page) => Promise<unknown>;
}

/** The storefront as it is built, and a browser to open it with. */
export interface Storefront {
  readonly browser: Browser;
  /** Where the build is */
  readonly outDir: string;
  /** Opens it as by the address that `npm run storefront` prints, for the length of the test. */
  visit(options?: VisitOptions): Promise<Visit>;
  /** Takes pictures of a state at each width in both schemes, and expects axe to find nothing in it. */
  inspect(page: Page, name: string): Promise<void>;
  close(): Promise<void>;
}

export async function openStorefront(executable: string | undefined): Promise<Storefront> {
  const outDir = await mkdtemp(join(tmpdir(), 'animal-store-storefront-'));
  const pictures = await mkdtemp(join(tmpdir(), 'animal-store-storefront-pictures-'));
  console.log(`Screenshots: ${pictures}`);
  await viteBuild(configFor('http://127.0.0.1:9', outDir));
  const browser = await launchBrowser(executable ?? '');
  return {
    browser,
    outDir,
    visit: (options) => visit(browser, outDir, options),
    inspect: (page, name) => inspect(page, name, pictures),
    async close() {
      await browser.close();
      await rm(outDir, { recursive: true, force: true });
    },
  };
}

function configFor(serviceUrl: string, outDir: string): InlineConfig {
  const config = storefrontConfig(serviceUrl);
  return {
    ...config,
    configFile: false,
    logLevel: 'silent',
    build: { outDir, emptyOutDir: true },
    preview: { ...config.preview, port: 0 },
  };
}

async function visit(browser: Browser, outDir: string, options: VisitOptions = {}): Promise<Visit> {
  const { service = await startOne(), key = service.key, pets = 0, prepare } = options;
  if (pets > 0) await stock(service, pets);
  const server = await preview(configFor(service.url, outDir));
  onTestFinished(() => server.close());
  const url = server.resolvedUrls?.local[0] ?? '';
  const watched = await openPage(browser.context);
  onTestFinished(() => watched.page.close());
  await prepare?.(watched.page);
  await watched.page.goto(key === null ? url : `${url}#key=${key}`);
  return { ...watched, service, url };
}

async function startOne(): Promise<TestService> {
  const service = await startService();
  onTestFinished(() => service.close());
  return service;
}

async function inspect(page: Page, name: string, folder: string): Promise<void> {
  const toggle = page.getByRole('button', { name: 'Add an animal' });
  for (const size of SIZES) {
    await page.setViewportSize(size);
    if (WITH_FORM.includes(name) && (await toggle.isVisible())) await toggle.click();
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const state = `${name}-${size.width}-${colorScheme}`;
      await page.screenshot({ path: join(folder, `${state}.png`), animations: 'disabled' });
      expect([state, await findViolations(page)]).toEqual([state, []]);
    }
  }
  for (const width of [320, 640, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect([name, width, overflow <= 0]).toEqual([name, width, true]);
  }
}

/** Nothing went wrong in the page but what is expected, and nothing was asked of another origin. */
export function expectNoFaults({ origins, faults, url }: Visit, expected = /^$/): void {
  expect(faults.filter((fault) => !expected.test(fault))).toEqual([]);
  expect([...origins]).toEqual([new URL(url).origin]);
}

/** Animals of all categories and statuses in turn. */
export async function stock({ database }: TestService, count: number): Promise<void> {
  await database.pool.query(
    `INSERT INTO pets (name, category_id, status)
     SELECT 'Animal ' || n || ', of the test', 1 + n % 6, (ARRAY['available', 'pending', 'sold'])[1 + n % 3]::pet_status
     FROM generate_series(1, $1) AS n`,
    [count],
  );
}

/** Holds requests back until it is opened. */
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

async function findViolations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<AxeResults>("axe.run({ resultTypes: ['violations'] })");
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
  );
}

export function names(page: Page) {
  return page.getByRole('heading', { level: 3 });
}

export function badges(page: Page): Promise<string[]> {
  return page.locator('.badge').allTextContents();
}

/** The ids of the animals as they are shown, in their order. */
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

/** What is said to those who cannot see it */
export function announcement(page: Page, text: string | RegExp) {
  return page.getByRole('status').getByText(text);
}

/** The field is marked as invalid, and what describes it says why. */
export async function expectFault(page: Page, label: string, fault: string | RegExp): Promise<void> {
  const field = page.getByLabel(label, { exact: true });
  await page.locator('[aria-invalid=true]').first().waitFor();
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  const ids = (await field.getAttribute('aria-describedby'))?.split(' ') ?? [];
  const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).textContent()));
  expect(texts).toContainEqual(typeof fault === 'string' ? fault : expect.stringMatching(fault));
}

export function expectFocus(page: Page, label: string): Promise<void> {
  return expectFocusOn(page.getByLabel(label, { exact: true }));
}

export async function expectFocusOn(locator: Locator): Promise<void> {
  await expect.poll(() => locator.evaluate((element) => element === document.activeElement), POLL).toBe(true);
}
